"""A page that shows what is learned while it is learned."""

from trueonline.nexting.live.hub import Hub, Shown
from trueonline.nexting.live.server import Server

__all__ = ["Hub", "Server", "Shown"]
