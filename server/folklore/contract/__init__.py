"""The operations as data: for each its request, its result, and the result as compact JSON, by subject."""
