-- The template engine: line-oriented, in the manner of a macro assembler.
--
--   % code            a line of Lua
--   text @{expr}      a line of output; expr is Lua
--   % include "NAME"  another template, rendered with the same parameters
--   % include("NAME", { key = value })  the same with more parameters
--
-- Each template becomes one Lua function over an environment of parameters. Where the line numbers of the output and of
-- the template diverge, a #line directive is inserted, so that compiler errors name the template's line. An undefined
-- name is an error with file and line, never an empty string.

local engine = {}

local function quoted_pieces(line, number, name)
  local pieces, position = {}, 1
  while true do
    local start = line:find("@{", position, true)
    if not start then break end
    local stop = line:find("}", start, true)
    if not stop then
      error(("%s:%d: '@{' without '}' on the same line"):format(name, number), 0)
    end
    pieces[#pieces + 1] = ("%q"):format(line:sub(position, start - 1))
    pieces[#pieces + 1] = "(" .. line:sub(start + 2, stop - 1) .. ")"
    position = stop + 1
  end
  pieces[#pieces + 1] = ("%q"):format(line:sub(position))
  return table.concat(pieces, ", ")
end

-- Translates each line of the template to one line of Lua, so that Lua's messages have the right line number too. The
-- function's argument is its environment.
local function translate(text, name)
  local out, number = {}, 0
  for line in (text:gsub("\n?$", "\n", 1)):gmatch("(.-)\n") do
    number = number + 1
    local code = line:match("^%s*%%(.*)$")
    if code then
      out[#out + 1] = code
    else
      out[#out + 1] = ("__emit(%d, %s)"):format(number, quoted_pieces(line, number, name))
    end
  end
  return "local _ENV = ...; " .. table.concat(out, "\n")
end

local compiled = {} -- name -> { text, function }

local function compile(text, name)
  local known = compiled[name]
  if known and known[1] == text then return known[2] end
  local chunk, message = load(translate(text, name), "=" .. name, "t", {})
  if not chunk then error(message, 0) end
  compiled[name] = { text, chunk }
  return chunk
end

local function strict(parameters, name)
  return setmetatable({}, {
    __index = function(_, key)
      local value = parameters[key]
      if value == nil then
        error(("%s:%d: '%s' is not defined"):format(name, calling_line(), tostring(key)), 0)
      end
      return value
    end,
    __newindex = function(_, key)
      error(("%s:%d: assignment to global '%s'; write 'local'"):format(name, calling_line(), key), 0)
    end,
  })
end

local library = { ipairs = ipairs, pairs = pairs, tostring = tostring, math = math, string = string, table = table }

-- Renders `text` (called `name` in messages and #line) with the given parameters; read(name) returns the text of an
-- included file.
function engine.render(text, name, parameters, read)
  local lines, expected = {}, nil
  local env = setmetatable({}, { __index = library })
  for key, value in pairs(parameters) do env[key] = value end
  env.__emit = function(number, ...)
    if number ~= expected then
      lines[#lines + 1] = ('#line %d "%s"'):format(number, name)
    end
    local pieces = {}
    for i = 1, select("#", ...) do
      local piece = select(i, ...)
      if type(piece) ~= "string" and math.type(piece) ~= "integer" then
        error(("%s:%d: '@{}' gives %s, expected a string or an integer"):format(name, number,
          math.type(piece) or type(piece)), 0)
      end
      pieces[i] = tostring(piece)
    end
    lines[#lines + 1] = table.concat(pieces)
    expected = not lines[#lines]:find("\n", 1, true) and number + 1 or nil
  end
  env.include = function(other, more)
    local all = {}
    for key, value in pairs(parameters) do all[key] = value end
    for key, value in pairs(more or {}) do all[key] = value end
    local text = engine.render(read(other), other, all, read):gsub("\n$", "")
    if text ~= "" then lines[#lines + 1], expected = text, nil end
  end
  compile(text, name)(strict(env, name))
  return table.concat(lines, "\n") .. "\n"
end

-- Adds text that is no template, with its own #line.
function engine.plain(text, name)
  return ('#line 1 "%s"\n%s'):format(name, text)
end

return engine
