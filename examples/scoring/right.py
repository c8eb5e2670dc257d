"""Scores an answer and keeps the result: one for each answer, however often its task is delivered.

The id is made from the answer, so it is the same at each attempt; and the gate's record is written in the same
transaction as the result: both are there, or neither is.
"""

import json
import os
import uuid

import fastapi
import psycopg
import pydantic
import uvicorn

DATABASE = os.environ["DATABASE_URL"]
RESULTS = uuid.UUID("5e3e1000-0000-4000-8000-000000000001")  # any fixed one: ids are made below it
WORDS = {"semel", "once", "single"}

app = fastapi.FastAPI()


class Answer(pydantic.BaseModel):
    answer: str
    student: str
    text: str


def score(text: str) -> int:
    """Stands for a model that reads the answer."""
    return sum(word in WORDS for word in text.lower().split())


@app.post("/score")
def on_task(task: Answer, semel_key: str = fastapi.Header(), semel_fence: int = fastapi.Header()) -> dict:
    """Called by the gate, which Cloud Tasks calls."""
    points = score(task.text)
    said = {"answer": task.answer, "score": points}
    with psycopg.connect(DATABASE) as db:  # COMMIT at its end, ROLLBACK when anything raises
        result = (uuid.uuid5(RESULTS, task.answer), task.student, task.answer, points)
        db.execute("INSERT INTO results VALUES (%s, %s, %s, %s)", result)
        db.execute("SELECT semel.complete(%s, %s, 200, %s)", (semel_key, semel_fence, json.dumps(said)))
    return said


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", 3000)), log_level="warning")
