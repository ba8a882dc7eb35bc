"""A page that shows what is learned while it is learned."""

from trueonline.streams.live.board import Board, Hubs
from trueonline.streams.live.hub import Hub, PageQuestion
from trueonline.streams.live.server import Server

__all__ = ["Board", "Hub", "Hubs", "PageQuestion", "Server"]
