"""Networks in files of ONNX: what they take and give, and what is no such network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.agents import load, save_spec
from hpcgym.scheduler.policies.networks import INPUTS, aged_network
from hpcgym.study import evaluate

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper  # noqa: E402

WORKLOAD = "lublin:jobs=600,processors=32,seed=5,load=12"
WINDOW = 32
OPTIONS: dict[str, Any] = {
    "workload": WORKLOAD, "window": WINDOW, "features": ["wait", "processors"], "jobs": 60,
    "backfill": "easy", "backfill_order": "spf", "reservation": "revised", "start": "empty",
    "arrivals": "stop", "horizon": None,
}  # fmt: skip


def write(path: Path, nodes: Any, inputs: Any, outputs: Any, constants: Any = ()) -> Path:
    """A graph of nodes, with inputs and outputs by name, type and shape."""
    sides = [
        [helper.make_tensor_value_info(*value_info) for value_info in side]
        for side in (inputs, outputs)
    ]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "policy", *sides, initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def narrowest(path: Path) -> Path:
    """A network that gives each job minus its processors."""
    return write(
        path,
        [helper.make_node("MatMul", ["jobs", "weights"], ["scores"])],
        [("jobs", TensorProto.FLOAT, ["n", WINDOW, 2])],
        [("scores", TensorProto.FLOAT, ["n", WINDOW, 1])],
        [("weights", np.array([[0], [-1]], np.float32))],
    )


def test_a_scorer_of_jobs_gives_the_same_scores(tmp_path: Path) -> None:
    import onnxruntime

    from hpcgym.agents.onnx_models import write_onnx

    begin, rng = aged_network(seed=1), np.random.default_rng(1)
    network = begin.from_vector(rng.normal(0, 1, begin.to_vector().size))
    write_onnx(tmp_path / "net.onnx", network)
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    centers, scales = (np.array(each) for each in list(zip(*INPUTS, strict=True))[1:])
    values = centers + scales * rng.normal(0, 2, (500, len(INPUTS)))
    (scores,) = session.run(None, {"inputs": values})
    z = (values - centers) / scales  # by hand, once more
    expected = z @ network.skip + np.tanh(z @ network.hidden.T + network.bias) @ network.output
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(network.scores(values), expected, rtol=0, atol=1e-9)
    told = session.get_modelmeta().custom_metadata_map["inputs"]
    assert told.splitlines() == [*network.inputs]


def played(policy: Any, **options: Any) -> Any:
    env: Any = gymnasium.make("hpcgym/JobSelection-v2", **{**OPTIONS, **options})
    observation, info = env.reset(seed=0, options={"start": 0, "jobs": 60})
    policy.begin(env)
    over = False
    while not over:
        observation, _, over, _, info = env.step(policy.act(observation, info))
    return env.unwrapped.result()


def test_the_greatest_number_that_the_mask_allows_is_taken(tmp_path: Path) -> None:
    """Places without a job have 0 processors: without a mask they would be the greatest."""
    policy = load(narrowest(tmp_path / "narrow.onnx"))
    expected = simulate(
        load_workload(WORKLOAD).take(slice(0, 60)),
        policy="-processors", backfill="easy", backfill_order="spf",
    )  # fmt: skip
    assert policy.name == "narrow"
    assert 8 < expected.metrics["max_queue_length"] <= WINDOW
    assert np.array_equal(played(policy).start, expected.start)


def test_it_stands_in_a_leaderboard(tmp_path: Path) -> None:
    file = narrowest(tmp_path / "narrow.onnx")
    env = gymnasium.make("hpcgym/JobSelection-v2", **OPTIONS, part="train")
    save_spec(env, file)
    assert (tmp_path / "narrow.env.json").exists()
    board = evaluate([str(file), "-processors"], WORKLOAD, n=2, jobs=60, budget=0, resamples=50)
    slowdowns = board.table["mean_bsld"]
    assert slowdowns[str(file)] == slowdowns["-processors"]


def first_place(folder: Path) -> Path:
    """A network of the whole of a flat observation; its answer is the first place."""
    return write(
        folder / "first.onnx",
        [
            helper.make_node("ReduceMin", ["x"], ["least"], axes=[1], keepdims=0),
            helper.make_node("Mul", ["least", "nothing"], ["none"]),
            helper.make_node("Cast", ["none"], ["action"], to=TensorProto.INT64),
        ],
        [("x", TensorProto.DOUBLE, ["n", None])],
        [("action", TensorProto.INT64, ["n"])],
        [("nothing", np.zeros(1))],
    )


def test_an_action_itself_and_flat_observations(tmp_path: Path) -> None:
    """The whole of a flat observation in one input of any name; the answer is the first place."""
    result = played(load(first_place(tmp_path)), observation="flat", backfill_order="fcfs")
    expected = simulate(load_workload(WORKLOAD).take(slice(0, 60)), "easy")
    assert np.array_equal(result.start, expected.start)


def test_numbers_are_actions_where_actions_are_numbers(tmp_path: Path) -> None:
    file = write(
        tmp_path / "weights.onnx",
        [helper.make_node("MatMul", ["queue", "weights"], ["action"])],
        [("queue", TensorProto.FLOAT, [1, 6])],
        [("action", TensorProto.FLOAT, [1, 2])],
        [("weights", np.zeros((6, 2), np.float32))],
    )
    env: Any = gymnasium.make(
        "hpcgym/MixedPolicy-v2", workload=WORKLOAD, jobs=20, policy_features=["wait", "area"],
        start="empty", arrivals="stop", horizon=None,
    )  # fmt: skip
    observation, info = env.reset(seed=0)
    policy = load(file)
    policy.begin(env)
    assert policy.act(observation, info).tolist() == [0, 0]
    assert policy.act(observation, info).dtype == env.action_space.dtype


def of_names(folder: Path) -> Path:
    return write(
        folder / "names.onnx",
        [helper.make_node("Identity", ["names"], ["same"])],
        [("names", TensorProto.STRING, ["n", 4])],
        [("same", TensorProto.STRING, ["n", 4])],
    )


def too_few(folder: Path) -> Path:
    return write(
        folder / "few.onnx",
        [helper.make_node("Identity", ["queue"], ["scores"])],
        [("queue", TensorProto.FLOAT, ["n", 6])],
        [("scores", TensorProto.FLOAT, ["n", 6])],
    )


def no_numbers(folder: Path) -> Path:
    return write(
        folder / "nan.onnx",
        [
            helper.make_node("MatMul", ["jobs", "weights"], ["zero"]),
            helper.make_node("Div", ["zero", "zero"], ["scores"]),
        ],
        [("jobs", TensorProto.FLOAT, ["n", WINDOW, 2])],
        [("scores", TensorProto.FLOAT, ["n", WINDOW, 1])],
        [("weights", np.zeros((2, 1), np.float32))],
    )


test_mistakes = mistakes_of(globals())
