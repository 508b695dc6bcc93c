"""A shopping agent whose item picker keeps to what its user said, whatever the model passes on.

Run it: python docs/tutorial/shopping_agent.py. The page beside it, shopping-agent.md, explains each part.
"""

import re
import tempfile
from pathlib import Path

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.session_state import Enforcer, Sessions, amounts_in, in_turn, render
from agent_runtime_ref.testing import FrozenClock

CATALOGUE = [
    {"name": "Clear plastic pouch", "kind": "toiletry bag", "price": "$9"},
    {"name": "Canvas wash bag", "kind": "toiletry bag", "price": "$24"},
    {"name": "Silk vanity case", "kind": "toiletry bag", "price": "$140"},
    {"name": "塑料沐浴架 (shower caddy)", "kind": "shower caddy", "price": "$12"},
    {"name": "Plastic-free bamboo caddy", "kind": "shower caddy", "price": "$31"},
    {"name": "Solid teak caddy", "kind": "shower caddy", "price": "$95"},
    {"name": "Steel caddy", "kind": "shower caddy", "price": "¥180"},
]
ENFORCER = Enforcer()


def pick_items(kind, exclude=(), budget=None):
    """Return what the shop has of a kind, held to the turn's constraints; the tool that a model calls."""
    return ENFORCER.apply(
        (item for item in CATALOGUE if item["kind"] == kind), exclude=exclude, budget=budget
    )


class ForgetfulModel:
    """Stands in for a model: it passes on what stands in the message, and nothing that was said before."""

    def __init__(self):
        """Begin with no prompt seen."""
        self.prompt = ""

    def answer(self, prompt, message, results):
        """Return the next step: a call of the tool, or the reply where the tool has answered."""
        self.prompt = prompt
        if results:
            return {"reply": ", ".join(item["name"] for item in results[-1].items) or "nothing that fits"}
        arguments = {"kind": "shower caddy" if "shower" in message else "toiletry bag"}
        if "no plastic" in message:
            arguments |= {"exclude": ["plastic"], "budget": "$50"}
        return {"call": arguments}


def heard(message):
    """Return the constraints that a message states; the place of a judge."""
    found = []
    for word in re.findall(r"\bno (\w+)", message):
        found.append(Finding("session", "dislike", "hard", "material", "general", word, f"no {word}"))
    for money in amounts_in(message):
        amount = Amount(str(money.value), money.currency)
        said = f"at most {money.value} {money.currency}"
        found.append(
            Finding(
                "session", "like", "hard", "budget", "general", "max", said, anchor="budget", amount=amount
            )
        )
    return found


class Agent:
    """One turn after the other, over one memory and one folder of sessions."""

    def __init__(self, sessions, model):
        """Put the agent together."""
        self.sessions = sessions
        self.model = model

    def turn(self, message, caller):
        """Return the reply to a message, and what the item picker kept out on the way."""
        thread = caller.session_id
        state = self.sessions.load(thread, caller=caller)
        prompt = f"You help to find things to buy.\n{render(state)}".strip()
        results = []
        with in_turn(state):
            while "call" in (step := self.model.answer(prompt, message, results)):
                results.append(pick_items(**step["call"]))
        self.sessions.merge(thread, heard(message), caller=caller)
        self.sessions.add_turn(thread, message, step["reply"], caller=caller)
        return step["reply"], [verdict for result in results for verdict in result.dropped]


def told(agent, message, caller):
    """Print a turn."""
    print(f"user:     {message}")
    reply, kept_out = agent.turn(message, caller)
    for verdict in kept_out:
        print(f"kept out: {verdict.item['name']} ({', '.join(verdict.reasons)})")
    print(f"agent:    {reply}\n")


def main(folder):
    """Have a conversation of two turns, and one on the next day."""
    clock = FrozenClock()
    with GovernedMemory.open("memory:", clock=clock) as memory:
        agent = Agent(Sessions(memory, folder=folder, clock=clock), ForgetfulModel())
        caller = Caller("tenant-acme", "user-42", session_id="trip-to-lisbon", subject="user-42")
        told(agent, "A toiletry bag for the trip: no plastic this time, and under $50.", caller)
        told(agent, "And something for the shower?", caller)
        print(agent.model.prompt, end="\n\n")
        clock.advance(days=1)
        told(agent, "Good morning! Something for the shower?", caller)
        print(agent.model.prompt)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
