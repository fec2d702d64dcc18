-- Indentation and the borders of lines count in the digest of a text: `digest` in text/clean.py. Of texts of one line it
-- is the same as before. Texts that were different stay different, so no two memories meet.

update memories
-- A cluster takes immutable functions alone: decode is one, convert_to is not.
set digest = sha256(decode(replace(btrim(
    regexp_replace(regexp_replace(regexp_replace(
        translate(
            normalize(content, NFC),
            U&'\00a0\1680\2000\2001\2002\2003\2004\2005\2006\2007\2008\2009\200a\202f\205f\3000',
            '                '
        ),
        -- Blanks after a word become one,
        E'(?<=[^\t \n])[\t ]+', ' ', 'g'),
        -- none is left at the end of a line,
        E'(?<![\t ])[\t ]+\n', E'\n', 'g'),
        -- and empty lines become one.
        E'\n{3,}', E'\n\n', 'g'),
    E' \t\n'
), E'\\', E'\\\\'), 'escape'))
where position(E'\n' in content) > 0 and getdatabaseencoding() = 'UTF8';
