// Moves what few commands need out of the start of the program, and keeps the place of each line.

/**
 * Moves the modules that quick commands do not need into a function in the scope of the others, called by the first import()
 * of one of them: until then V8's cache holds nothing of them. Returns the code, and the index that each of its lines had
 * before. Throws if the output of esbuild has another form.
 */
export function deferModules(code, inputs, quickModules) {
  const quick = findQuick(inputs, quickModules);
  const [modules, exported] = code.split(/^(?=\/\/ Annotate the CommonJS export names)/m);
  if (exported === undefined || !quickModules.every((file) => quick.has(file)))
    throw new Error('program.cjs: unexpected output of esbuild');
  const parts = { quick: [], deferred: [] };
  let current = parts.quick;
  const lines = modules.trimEnd().split('\n');
  for (const [index, text] of lines.entries()) {
    const file = /^\/\/ (.*)/.exec(text)?.[1];
    if (inputs[file] !== undefined) current = quick.has(file) ? parts.quick : parts.deferred;
    current.push({ text, index });
  }
  const entries = redirectImports(parts);
  const added = (...texts) => texts.map((text) => ({ text }));
  const result = [
    ...parts.quick,
    ...added('var __loaders;', 'function __deferred() { return (__loaders ??= __defer()); }'),
    ...added('function __defer() {'),
    ...parts.deferred,
    ...added(`return { ${entries.join(', ')} };`, '}', ...exported.split('\n')),
    // For bin/opmate.cjs: what the code cache contains.
    ...added('module.exports.isDeferredLoaded = () => __loaders !== undefined;'),
  ];
  return {
    code: result.map(({ text }) => text).join('\n'),
    lines: result.map(({ index }) => index),
  };
}

/** Modules that the quick ones import before they run. */
function findQuick(inputs, quickModules) {
  const quick = new Set();
  const [entry] = quickModules;
  const visit = (file) => {
    if (quick.has(file) || inputs[file] === undefined) return;
    quick.add(file);
    for (const { kind, path: imported } of inputs[file].imports) {
      const isLater = kind === 'dynamic-import' || (file === entry && kind === 'require-call');
      if (!isLater) visit(imported);
    }
  };
  quickModules.forEach(visit);
  return quick;
}

/** Makes quick modules load deferred ones by the function around them; returns the entries of what it returns. */
function redirectImports({ quick, deferred }) {
  const declared = new Set(deferred.flatMap(({ text }) => /^var (\w+)/.exec(text)?.[1] ?? []));
  const entries = new Map();
  const load =
    /\(\) => (\((init_\w+)\(\), (?:\w+|__toCommonJS\(\w+\))\)|__toESM\((require_\w+)\(\), 1\))(?=[);])/g;
  for (const line of quick)
    line.text = line.text.replace(load, (text, expression, initializer, loader = initializer) => {
      if (!declared.has(loader)) return text;
      // The same module may be loaded in more than one form.
      const name = expression.includes('__toCommonJS') ? `${loader}_library` : loader;
      entries.set(name, `${name}: () => ${expression}`);
      return `() => __deferred().${name}()`;
    });
  if (entries.size === 0) throw new Error('program.cjs: unexpected output of esbuild');
  return [...entries.values()];
}
