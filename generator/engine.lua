-- The template engine: line-oriented, in the manner of a macro assembler.
--
--   % code            a line of Lua
--   text @{expr}      a line of output; expr is Lua
--   % include "NAME"  another template, rendered with the same parameters
--   % include("NAME", { key = value })  the same with more parameters
--
-- Each template becomes one Lua function over an environment of parameters. #line directives are put in
-- wherever the output falls out of step with the template, so that a compiler error names the template's
-- own line. A name that nobody defined is an error with file and line, never an empty string.

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

-- One line of Lua for each line of the template, so that Lua's own messages have the right number too. The function takes
-- its environment as the argument.
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

-- Renders `text` (called `name` in messages and #line) with the given parameters; read(name) gives the text
-- of what it includes.
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
    expected = number + 1
  end
  env.include = function(other, more)
    local all = {}
    for key, value in pairs(parameters) do all[key] = value end
    for key, value in pairs(more or {}) do all[key] = value end
    lines[#lines + 1] = engine.render(read(other), other, all, read):gsub("\n$", "")
    expected = nil
  end
  compile(text, name)(strict(env, name))
  return table.concat(lines, "\n") .. "\n"
end

-- Text that is no template, with its own #line.
function engine.plain(text, name)
  return ('#line 1 "%s"\n%s'):format(name, text)
end

return engine
