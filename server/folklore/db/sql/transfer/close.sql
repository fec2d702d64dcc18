-- The cursors of an export: one is open at a time.
close all
