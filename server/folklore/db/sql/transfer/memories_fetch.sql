-- The next rows of the cursor.
fetch forward 200 from folklore_memories
