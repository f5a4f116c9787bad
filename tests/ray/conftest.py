"""A real cluster on this machine, two nodes of one core each, and everything of it gone afterwards."""

import os
import signal
import sys
import uuid
from pathlib import Path

import pytest
from ray_processes import marked, still_there

if sys.version_info >= (3, 15):
    collect_ignore_glob = ["test_*.py"]  # Ray has no wheels for it yet

HERE = Path(__file__).parent
for folder in (HERE.parent / "bulk", HERE.parent / "wikipedia"):
    sys.path.append(str(folder))
# What the workers of a cluster may import: jobs of these tests.
os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE.parent / "bulk"), os.environ.get("PYTHONPATH", "")])
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

# A node that is killed is missed after seconds, not after half a minute.
QUICK = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000, "health_check_failure_threshold": 4}
STORE = 100 << 20


def start():
    """Start two nodes. Ray gives a node half a minute, which on a machine with much else to do may be too little."""
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False, "_system_config": QUICK}
    for last in (False, False, True):
        mark = os.environ["EBERT_TEST_CLUSTER"] = uuid.uuid4().hex
        made = Cluster()
        try:
            made.add_node(**head)
            made.add_node(num_cpus=1, object_store_memory=STORE)
        except Exception:
            made.shutdown()
            for pid in marked(mark):
                os.kill(pid, signal.SIGKILL)
            if last:
                raise
        else:
            return made, mark
        finally:
            del os.environ["EBERT_TEST_CLUSTER"]  # other processes of these tests are not the cluster's
    raise AssertionError


@pytest.fixture(scope="module")  # another file in the same process is to find no connection
def cluster():
    """A cluster of two nodes that this process is connected to. The last test kills one of them."""
    import ray

    made, mark = start()
    try:
        ray.init(address=made.address, log_to_driver=False)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
    assert still_there(mark) == []
