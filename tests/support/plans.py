"""Plans of generations, some transitions on."""

from worker.generations.generation import Generation
from worker.generations.plan import Plan


def taken_over(plan: Plan, following: Generation) -> Plan:
    """Return the plan once a generation was built, has taken over, and is in use."""
    building = plan.start_build(following)
    return (building.seal() if building.rewriting else building).hand_over().finish()
