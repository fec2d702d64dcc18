-- Every array type that a statement takes or returns, all null: asyncpg looks up all of them at once.
select :smallints::int2[], :integers::int4[], :bigints::int8[], :reals::real[], :doubles::float8[], :uuids::uuid[],
    :digests::bytea[], :vectors::halfvec[]
