"use strict";
(function () {
  const data = JSON.parse(document.getElementById("data").textContent);
  const pick = { problem: document.getElementById("problem"), matrix: document.getElementById("matrix"), n: document.getElementById("n") };
  const rows = document.getElementById("rows"), about = document.getElementById("about");

  function element(tag, text, className) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  }

  /* Options are [value, text]; what was chosen stays chosen where it is still there. */
  function offer(select, options) {
    const before = select.value;
    select.replaceChildren(...options.map(([value, text]) => {
      const option = element("option", text);
      option.value = value;
      option.selected = String(value) === before;
      return option;
    }));
  }

  function distinct(cases, key) {
    return [...new Map(cases.map((c) => [c[key], c])).values()];
  }

  function micro(value) {
    return value >= 100 ? value.toFixed(1) : value >= 10 ? value.toFixed(2) : value.toFixed(3);
  }

  function bar(time, spread, slowest) {
    const box = element("div", undefined, "bar"), whole = element("i"), line = element("b");
    const left = Math.max(0, time - spread / 2);
    whole.style.width = (100 * time) / slowest + "%";
    line.style.left = (100 * left) / slowest + "%";
    line.style.width = Math.max(0, Math.min(100 - (100 * left) / slowest, (100 * spread) / slowest)) + "%";
    box.append(whole, line);
    return box;
  }

  function row(candidate, best, slowest, ways) {
    const [variant, time, spread, prepare, count, precise] = candidate;
    const tr = element("tr", undefined, time === best ? "best" : "");
    const cell = element("td", undefined, "bars");
    cell.append(bar(time, spread, slowest));
    tr.append(element("td", data.variants[variant]), element("td", micro(time), "number"), element("td", spread || precise ? micro(spread) : "-", "number"),
      element("td", (time / best).toFixed(3) + "x", "number"), cell, element("td", prepare ? micro(prepare) : "", "number"),
      element("td", ways.filter((way) => way[1] === variant).map((way) => way[0]).join(", ")),
      element("td", (precise ? "measured" : "screened") + (count > 1 ? ", " + count + " times" : "")));
    return tr;
  }

  function show() {
    const c = data.cases.find((c) => c.problem == pick.problem.value && c.id === pick.matrix.value && c.n == pick.n.value);
    if (!c) return;
    const sorted = [...c.candidates].sort((a, b) => a[1] - b[1]);
    const best = sorted.length ? sorted[0][1] : 0, slowest = Math.max(...sorted.map((x) => x[1] + x[2] / 2));
    rows.replaceChildren(...sorted.map((x) => row(x, best, slowest, c.ways)));
    const left = [];
    if (c.more) left.push(c.more + " slower ones are not shown");
    if (c.failed) left.push(c.failed + " failed");
    about.textContent = c.matrix + ": " + c.rows.toLocaleString("en") + " rows, " + c.nnz.toLocaleString("en") + " non-zeros, " +
      (c.rows ? c.nnz / c.rows : 0).toPrecision(3) + " a row, CV " + c.cv.toPrecision(3) + ", bucket " + c.bucket + "; " +
      sorted.length + " candidates" + (left.length ? ", " + left.join(", ") : "") + ".";
  }

  function offerN() {
    offer(pick.n, distinct(data.cases.filter((c) => c.problem == pick.problem.value && c.id === pick.matrix.value), "n").map((c) => [c.n, c.n]));
    show();
  }

  function offerMatrices() {
    const matrices = distinct(data.cases.filter((c) => c.problem == pick.problem.value), "id");
    matrices.sort((a, b) => a.matrix.localeCompare(b.matrix, "en", { numeric: true }));
    offer(pick.matrix, matrices.map((c) => [c.id, c.matrix]));
    offerN();
  }

  /* The case whose mark is nearest to the pointer, in a picture that says where its plane lies. */
  const tip = element("div", undefined, "tip");
  tip.hidden = true;
  document.body.append(tip);

  function position(value, key, least, most) {
    const scale = key === "cv" ? (v) => Math.log10(1 + v) : Math.log10;
    return (scale(value) - scale(least)) / (scale(most) - scale(least));
  }

  function marksOf(figure) {
    const [x, y, ...numbers] = figure.dataset.plane.split(" ");
    const [xLeast, xMost, yLeast, yMost, left, right, top, bottom] = numbers.map(Number);
    const of = (c, key) => (key === "mean" ? c.nnz / c.rows : c[key]);
    const inside = data.cases.filter((c) => c.rows && c.nnz && (!figure.dataset.n || (c.n == figure.dataset.n && c.problem == figure.dataset.problem)));
    return inside.map((c) => ({
      c,
      x: left + (right - left) * position(of(c, x), x, xLeast, xMost),
      y: bottom - (bottom - top) * position(of(c, y), y, yLeast, yMost),
    }));
  }

  function point(figure, marks, event) {
    const box = figure.querySelector("img").getBoundingClientRect();
    let nearest = null, least = 14;
    for (const mark of marks) {
      const distance = Math.hypot(box.left + mark.x * box.width - event.clientX, box.top + mark.y * box.height - event.clientY);
      if (distance < least) [nearest, least] = [mark.c, distance];
    }
    tip.hidden = !nearest;
    if (!nearest) return;
    tip.textContent = nearest.matrix + (figure.dataset.n && nearest.winner !== undefined ? ": " + data.variants[nearest.winner] + ", " + micro(nearest.us) + " us" : "");
    tip.style.left = Math.max(0, Math.min(event.clientX + 12, document.documentElement.clientWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = (event.clientY + 16 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 16) + "px";
  }

  for (const figure of document.querySelectorAll("figure[data-plane]")) {
    let marks = null;
    const move = (event) => point(figure, (marks = marks || marksOf(figure)), event);
    figure.addEventListener("pointermove", move);
    figure.addEventListener("pointerdown", move);
    figure.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

  offer(pick.problem, data.problems.map((key, i) => [i, key]));
  pick.problem.addEventListener("change", offerMatrices);
  pick.matrix.addEventListener("change", offerN);
  pick.n.addEventListener("change", show);
  offerMatrices();
})();
