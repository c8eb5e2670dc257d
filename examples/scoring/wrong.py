"""Scores an answer and keeps the result. Wrong: every delivery of the same task makes a result of its own.

The primary key looks like protection. But uuid4() makes a new one at each attempt, so it never meets the old row.
"""

import os
import uuid

import fastapi
import psycopg
import pydantic
import uvicorn

DATABASE = os.environ["DATABASE_URL"]
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
def on_task(task: Answer) -> dict:
    """Called by Cloud Tasks."""
    points = score(task.text)
    with psycopg.connect(DATABASE) as db:
        result = (uuid.uuid4(), task.student, task.answer, points)
        db.execute("INSERT INTO results VALUES (%s, %s, %s, %s)", result)
    return {"answer": task.answer, "score": points}


if __name__ == "__main__":
    uvicorn.run(app, port=int(os.environ.get("PORT", 3000)), log_level="warning")
