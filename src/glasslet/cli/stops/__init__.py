"""Commands about stops: hold a pod at a place of its way, look at it, let it go on."""
