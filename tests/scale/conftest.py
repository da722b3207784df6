"""Away from the user's cache and the network."""

from isolation import cache as cache
