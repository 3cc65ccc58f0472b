"""A tool that waits for your approval. What you type instead of y is a refusal that the agent reads."""

from greenroom import Agent, ApprovalRequest, tool


@tool(needs_approval=True)
def pay(amount: int, receiver: str) -> str:
    """Pay an amount, in dollars."""
    return f"paid ${amount} to {receiver}"


def approve(request: ApprovalRequest) -> bool | str:
    """Ask the person at the terminal."""
    reply = input(f"{request.question} [y/N or a reason]: ").strip()
    return reply == "y" or reply


clerk = Agent("clerk", "You pay bills.", tools=[pay])

if __name__ == "__main__":
    print(clerk.run_sync("Pay five dollars to Ann.", approve=approve).output)
