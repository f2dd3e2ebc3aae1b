"""The files of a release: what agents of submissions have learned, with their digests.

    python -m hpcgym.suite.packing release rule-es job-ppo

copies the agents of the submissions rule-es and job-ppo to the folder release, under names such as
kth-order-job-ppo-0.pt, and writes released.json beside them, which tells the digest of each. With
that file in agents/ and the others at :data:`hpcgym.agents.released.RELEASE`,
``hpcgym.agents.load("suite:kth-order/job-ppo/0")`` finds them. Nobody's own classes are packed:
only files that ``hpcgym.agents.load`` reads without running code of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hpcgym.agents import contents_of, ending_of
from hpcgym.agents.released import REGISTRY
from hpcgym.errors import HpcgymError
from hpcgym.files import bytes_of
from hpcgym.files.writing import whole, whole_json
from hpcgym.suite.submissions import read
from hpcgym.suite.trainings import TRAININGS
from hpcgym.workload.io.files import sha256_of

_MOST = 1 << 28  # bytes of a file


def pack(output: Path, folders: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Copy the agents of submissions to a folder; return its registry, which is written, too.

    Returns
    -------
    registry : "TASK/AGENT/SEED" -> ``file`` and ``sha256``.

    Raises
    ------
    HpcgymError : no submission, one without agents, a file that is none of an agent, or two agents
        of one name.
    """
    found: dict[str, dict[str, str]] = {}
    for folder in folders:
        done = read(folder)
        files = [
            (task, path)
            for task in done.tasks
            for path in sorted((folder / TRAININGS / task).glob("*"))
            if path.suffix != ".csv"
        ]
        if not files:
            raise HpcgymError(f"{folder} has no files of trained agents")
        for task, path in files:
            agent = contents_of(path)["agent"]
            name = f"{task}/{agent}/{path.stem}"
            if name in found:
                raise HpcgymError(f"{folder}: there are two agents {name}")
            file = f"{task}-{agent}-{path.stem}{ending_of(agent)}"
            with whole(output / file, folders=True) as part:
                part.write_bytes(bytes_of(path, _MOST, HpcgymError))
            found[name] = {"file": file, "sha256": sha256_of(output / file)}
    whole_json(output / REGISTRY.name, found)
    return found


def main(arguments: Sequence[str]) -> None:
    """Pack submissions, and say how many files there are."""
    if len(arguments) < 2:
        raise HpcgymError("usage: python -m hpcgym.suite.packing OUTPUT SUBMISSION...")
    output, *folders = map(Path, arguments)
    print(f"{output}: {len(pack(output, folders))} files of agents, and {REGISTRY.name}")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except HpcgymError as error:
        sys.exit(f"hpcgym: {error}")
