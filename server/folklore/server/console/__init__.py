"""The console: pages in the browser over the same service as the tools."""
