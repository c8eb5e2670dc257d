-- Deliveries as Cloud Tasks sends them: each under a task name of its own, or under the same few names in turn.
-- After `--`: the file of the body, the first part of every name, and how many names there are (0: no end of them);
-- then, if there is one, the token that each carries.

local threads = 0

function setup(thread)
  thread:set("number", threads)
  threads = threads + 1
end

local before, after, sent, names

function init(args)
  local file = assert(io.open(args[1], "rb"))
  local body = file:read("*a")
  file:close()
  names = tonumber(args[3])
  local prefix = args[2] .. "-"
  if names == 0 then
    prefix = prefix .. number .. "-"
    sent = 0
  else
    -- Threads that began with the same name would ask for the same names all the time.
    sent = math.floor(names / 2) * number
  end
  local headers = {
    ["Content-Type"] = "application/json",
    ["User-Agent"] = "Google-Cloud-Tasks",
    ["X-CloudTasks-QueueName"] = "orders",
    ["X-CloudTasks-TaskName"] = "@NAME@",
    ["X-CloudTasks-TaskRetryCount"] = "0",
    ["X-CloudTasks-TaskExecutionCount"] = "0",
    ["X-CloudTasks-TaskETA"] = "1794789600.000000",
  }
  if args[4] then
    headers["Authorization"] = "Bearer " .. args[4]
  end
  local text = wrk.format("POST", "/orders", headers, body)
  local from, to = text:find("@NAME@", 1, true)
  before = text:sub(1, from - 1) .. prefix
  after = text:sub(to + 1)
end

function request()
  sent = sent + 1
  local name = sent
  if names > 0 then
    name = sent % names
  end
  return before .. name .. after
end

function done(summary)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"microseconds":%d,"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d}\n',
    summary.requests, summary.duration,
    errors.connect, errors.read, errors.write, errors.timeout, errors.status
  ))
end
