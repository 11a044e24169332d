// JSON schemas of tools, as far as a form can show them. A reference is followed inside the document only; for
// one that is circular or points elsewhere there is no form, and nothing is ever fetched.

const own = (object, name) => (object !== null && typeof object === 'object' && Object.hasOwn(object, name) ? object[name] : undefined);
const isSchema = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** What a pointer (#/$defs/x) or an anchor (#x) of the document stands for. */
function find(root, ref) {
  if (ref === '#') return root;
  if (ref.startsWith('#/')) {
    let at = root;
    for (const step of ref.slice(2).split('/')) {
      let name = step;
      try { name = decodeURIComponent(step); } catch { /* as it stands */ }
      at = own(at, name.replaceAll('~1', '/').replaceAll('~0', '~'));
    }
    return at;
  }
  if (!/^#[A-Za-z_][-A-Za-z0-9._]*$/.test(ref)) return undefined;
  return Object.values({ ...own(root, '$defs'), ...own(root, 'definitions') }).find((s) => own(s, '$anchor') === ref.slice(1));
}

/** `more` over `base`: properties are joined, and what is required adds up. */
function merge(base, more) {
  const merged = { ...base, ...more };
  if (base.properties || more.properties) merged.properties = { ...base.properties, ...more.properties };
  const required = [base.required, more.required].filter(Array.isArray);
  if (required.length) merged.required = required.flat();
  return merged;
}

/**
 * [schema, seen]: a schema with its references and allOf resolved, or null when there is none to show; and `seen`, the
 * references that led here, with those that were followed now.
 */
export function resolve(root, schema, seen = []) {
  let now = schema;
  let way = seen;
  for (let steps = 0; isSchema(now) && own(now, '$ref') !== undefined; steps++) {
    const { $ref, ...rest } = now;
    if (typeof $ref !== 'string' || way.includes($ref) || steps > 20) return [null, way];
    way = [...way, $ref];
    const target = find(root, $ref);
    if (!isSchema(target)) return [null, way];
    now = merge(target, rest);
  }
  if (!isSchema(now)) return [now === true ? {} : null, way];
  if (Array.isArray(now.allOf)) {
    const { allOf, ...rest } = now;
    now = rest;
    for (const part of allOf.slice(0, 50)) {
      const [found, further] = resolve(root, part, way);
      if (found === null) return [null, way];
      way = further;
      now = merge(now, found);
    }
  }
  return [now, way];
}

/** The one schema of "this or null", as many languages write an optional value. */
function withoutNull(schema) {
  for (const word of ['anyOf', 'oneOf']) {
    const kinds = own(schema, word);
    if (!Array.isArray(kinds)) continue;
    const left = kinds.filter((k) => own(k, 'type') !== 'null');
    if (left.length === 1 && kinds.length === 2) {
      const { [word]: _, ...rest } = schema;
      return merge(left[0], rest);
    }
  }
  return schema;
}

/** [[value, text]] of a choice, or null. */
function choicesOf(schema) {
  for (const word of ['oneOf', 'anyOf']) {
    const rows = own(schema, word);
    if (Array.isArray(rows) && rows.length && rows.every((r) => own(r, 'const') !== undefined))
      return rows.map((r) => [r.const, String(own(r, 'title') ?? own(r, 'description') ?? text(r.const))]);
  }
  const names = own(schema, 'enumNames');
  if (Array.isArray(own(schema, 'enum'))) return schema.enum.map((v, i) => [v, String(Array.isArray(names) && names[i] !== undefined ? names[i] : text(v))]);
  if (own(schema, 'const') !== undefined) return [[schema.const, String(own(schema, 'title') ?? text(schema.const))]];
  return null;
}
const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/**
 * What a form shows for a schema: {kind, schema, seen, choices}; the kind is object, array, choice, string, number, integer,
 * boolean or json.
 */
export function kindOf(root, schema, seen) {
  let [now, way] = resolve(root, schema, seen);
  if (now === null) return { kind: 'json', schema: isSchema(schema) ? schema : {}, seen };
  const single = withoutNull(now);
  if (single !== now) {
    [now, way] = resolve(root, single, way);
    if (now === null) return { kind: 'json', schema: single, seen };
  }
  const choices = choicesOf(now);
  const types = (Array.isArray(now.type) ? now.type : [now.type]).filter((t) => t !== 'null');
  const type = types.length === 1 ? types[0] : undefined;
  const given = { schema: now, seen: way };
  if (choices && choices.length <= 1000) return { kind: 'choice', choices, ...given };
  if ((type === 'object' || (type === undefined && types.length === 1)) && isSchema(now.properties) && Object.keys(now.properties).length) return { kind: 'object', ...given };
  if (type === 'array' && !Array.isArray(now.items) && now.items !== false) return { kind: 'array', ...given };
  if (['string', 'number', 'integer', 'boolean'].includes(type)) return { kind: type, ...given };
  return { kind: 'json', ...given };
}
