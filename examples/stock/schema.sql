CREATE TABLE IF NOT EXISTS stock (
  item   text    PRIMARY KEY,
  pieces integer NOT NULL CHECK (pieces >= 0)
);
