"""The ideas behind cooperative sheaves, drawn from computed operators."""
