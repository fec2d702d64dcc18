-- Presets of the ranking are in the settings alone.

drop table presets;
