"""`kubectl glass`: the questions of `glasslet`, through the API server's node proxy, with the user's own rights."""
