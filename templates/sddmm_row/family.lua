local family = shared "dot.lua"("wlm_sddmm_row", "rows")
family.version = 1
family.summary = "a group of lanes a row of A, which keeps its row of X in registers" -- several rows share a warp
family.samples, family.simple = true, true
function family.registers(p, problem, limits)
  if problem.message == "rdiv" then return 255 end -- a division of each element
  return (p.vector * p.batch * problem.dense_bytes >= 128 and 128 or 112) + (limits.arch >= 100 and 16 or 0)
end
return family
