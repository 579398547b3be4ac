-- Drives an ACP agent with the client of avante.nvim: a prompt, an edit that is allowed, and a load by a second client.
-- nvim --headless -u NONE -i NONE --cmd "set rtp^=FOLDER" -l drive_avante.lua WORKSPACE PROGRAM ARGUMENT...
-- Prints one JSON object of what came. The two modules are avante's own settings and helpers, which need its plugins.

local workspace, program = arg[1], arg[2]
local arguments = vim.list_slice(arg, 3)

package.loaded["avante.config"] = { debug = false }
package.loaded["avante.utils"] = { debug = function() end }
local ACPClient = require("avante.libs.acp_client")

local seen = { stops = {}, updates = {}, questions = {}, replayed = {}, errors = {} }

local function client(updates)
  local made = ACPClient:new({
    transport_type = "stdio",
    command = program,
    args = arguments,
    env = vim.fn.environ(),
    handlers = {
      on_session_update = function(update)
        updates[#updates + 1] = update
      end,
      on_request_permission = function(call, options, callback)
        seen.questions[#seen.questions + 1] = { toolCall = call, options = options }
        for _, option in ipairs(options) do
          if option.kind == "allow_once" then
            callback(option.optionId)
            return
          end
        end
      end,
      on_read_file = function(_, _, _, _, fail)
        fail("no such file", ACPClient.ERROR_CODES.RESOURCE_NOT_FOUND)
      end,
    },
  })
  return made
end

-- Calls a function that takes a callback, and returns the first value that the callback gets.
local function wait(call)
  local done, result = false, nil
  call(function(value, err)
    if err then
      seen.errors[#seen.errors + 1] = err.message
    end
    done, result = true, value
  end)
  vim.wait(60000, function()
    return done
  end, 10)
  return result
end

local function connected(updates)
  local made = client(updates)
  wait(function(callback)
    made:connect(function(err)
      callback(nil, err)
    end)
  end)
  return made
end

local first = connected(seen.updates)
local session = wait(function(callback)
  first:create_session(workspace, nil, callback)
end)
for _, words in ipairs({ "say hello", "write new.txt" }) do
  local answer = wait(function(callback)
    first:send_prompt(session, { first:create_text_content(words) }, callback)
  end)
  seen.stops[#seen.stops + 1] = (answer or {}).stopReason
end
seen.options = first.config_options

local second = connected(seen.replayed)
wait(function(callback)
  second:load_session(session, workspace, {}, callback)
end)
vim.wait(200) -- updates are scheduled
first:stop()
second:stop()
io.stdout:write(vim.json.encode(seen))
os.exit(0)
