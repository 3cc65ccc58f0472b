"""A tool, and an answer that is a dataclass."""

from dataclasses import dataclass

from greenroom import Agent, tool

ORDERS = {42: "2 × teapot, delivered on Monday, $39.80"}


@dataclass
class Refund:
    """What to pay back."""

    order: int
    amount: float
    reason: str


@tool(effect="pure")
def find_order(number: int) -> str:
    """Look up an order by its number."""
    return ORDERS.get(number, "There is no such order.")


support = Agent("support", "Look every order up before you decide.", tools=[find_order], output_type=Refund)

if __name__ == "__main__":
    result = support.run_sync("One of the two teapots of order 42 arrived broken.")
    print(result.output)
    print(f"run {result.run_id}, ${result.usage.cost:.4f}")
