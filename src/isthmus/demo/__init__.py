"""The demonstration: the main job on real processes, with what went over the wires between them."""
