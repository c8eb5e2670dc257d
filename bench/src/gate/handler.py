"""What is usually written by hand: a row is inserted under the key, the work is done, the row gets its result."""

import json
import os
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, Request, Response

# A connection for each of 64 requests in hand, in two workers.
CONNECTIONS = 32

INSERT = "INSERT INTO done (key) VALUES ($1) ON CONFLICT DO NOTHING"
UPDATE = "UPDATE done SET result = $2 WHERE key = $1"
SELECT = "SELECT result FROM done WHERE key = $1"


@asynccontextmanager
async def lifespan(app):
    url = os.environ["DATABASE_URL"]
    async with asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/ready")
async def ready():
    return "ready"


@app.post("/orders")
async def orders(request: Request):
    key = request.headers["x-cloudtasks-taskname"]
    order = await request.json()
    pool = app.state.pool
    if await pool.execute(INSERT, key) == "INSERT 0 1":
        result = json.dumps({"order": order["order_id"], "status": "paid"})
        await pool.execute(UPDATE, key, result)
    else:
        result = await pool.fetchval(SELECT, key)
        if result is None:
            return Response(status_code=409)
    return Response(result, media_type="application/json")
