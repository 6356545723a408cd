"""From a source file to a graph, a package per format."""
