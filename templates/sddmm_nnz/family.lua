local family = shared "dot.lua"("wlm_sddmm_nnz", "nnz")
family.version = 1
family.summary = "the same number of edges for every group of lanes, wherever rows end"
table.insert(family.parameters, 1, { "share", { 8, 32, 128 } }) -- edges of a group; 8 for matrices of a few thousand edges
function family.registers(p, problem)
  if problem.message == "rdiv" then return 255 end -- a division of each element
  return p.vector * p.batch * problem.dense_bytes >= 128 and 168 or 128
end
return family
