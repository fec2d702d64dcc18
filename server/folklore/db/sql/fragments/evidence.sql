-- Included: how much a posting p says for its lexeme, before weighing (BM25: Robertson and Zaragoza 2009, equation 3.15).
-- :prior: a memory counts as (length + prior) / (mean length + prior) times as long as others, so that length matters
-- among long texts and hardly among short ones; usual.damping is k1 / (mean length + prior), and :saturation k1. A lexeme
-- near the beginning counts up to once more: what a text is about it says first.
            (:saturation::float8 + 1) / (1 + usual.damping * (p.length + :prior::float8)
                / (p.frequency + exp(greatest(p.first_position / -10.0::float8, -30))))
