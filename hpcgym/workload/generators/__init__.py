"""Workloads made by models."""

#: Name -> the function that generates workloads, which is imported when it is needed. A generator's
#: arguments follow its name: ``lublin:jobs=1000,seed=3``. Those of other packages are known, too.
GENERATORS = {
    "lublin": "hpcgym.workload.generators.lublin:lublin",
    "eurora": "hpcgym.workload.generators.campaigns:eurora",
    "kit": "hpcgym.workload.generators.campaigns:kit",
    "helios": "hpcgym.workload.generators.helios:helios",
    "light-esp": "hpcgym.workload.generators.light_esp:light_esp",
    "codes": "hpcgym.workload.codes:codes",
}
