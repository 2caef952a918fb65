// Does nothing: what starting node costs.
