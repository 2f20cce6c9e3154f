import { posix } from 'node:path'
import { parseSync } from 'oxc-parser'

/** A node of a syntax tree: what the walk needs of it. */
interface SyntaxNode {
  readonly type: string
  readonly [field: string]: unknown
}

/** The declarations of a file, and the places from which it has other names. */
interface Module {
  readonly declared: ReadonlyMap<string, SyntaxNode>
  /** By local name: the file, and the name there. */
  readonly imported: ReadonlyMap<string, Place>
  /** By exported name, where it is not declared here. */
  readonly passedOn: ReadonlyMap<string, Place>
}

/** A file, and a name in it. */
export interface Place {
  readonly path: string
  readonly name: string
}

/**
 * Lists the types of this tree that a signature exported by `entry` names and that `entry` does not export, as `Type of Export`.
 * @param concerns chooses the exports that count, by where they are declared.
 */
export function typesWithoutExport(
  entry: string,
  tree: ReadonlyMap<string, string>,
  concerns: (declared: Place) => boolean = () => true,
): string[] {
  const modules = new Map<string, Module>()
  const moduleAt = (path: string): Module => {
    const source = tree.get(path)
    if (source === undefined) throw new Error(`${path} is imported and does not exist`)
    const known = modules.get(path) ?? readModule(path, source)
    modules.set(path, known)
    return known
  }
  /** The file that declares a name, found through the doors that pass it on. */
  const declaredAt = ({ path, name }: Place): Place | undefined => {
    const { declared, imported, passedOn } = moduleAt(path)
    if (declared.has(name)) return { path, name }
    const next = passedOn.get(name) ?? imported.get(name)
    return next === undefined ? undefined : declaredAt(next)
  }
  const keyOf = ({ path, name }: Place): string => `${path}#${name}`
  const exported = [...moduleAt(entry).passedOn.values()].map(declaredAt).filter((place) => place !== undefined)
  const isExported = new Set(exported.map(keyOf))
  const unnamed = new Set<string>()
  const visit = (owner: string, place: Place, seen: Set<string>): void => {
    if (seen.has(keyOf(place))) return
    seen.add(keyOf(place))
    const { named, bases } = typesIn(moduleAt(place.path).declared.get(place.name))
    for (const name of named) {
      const found = declaredAt({ path: place.path, name })
      if (found !== undefined && !isExported.has(keyOf(found))) unnamed.add(`${found.name} of ${owner}`)
    }
    // What is inherited is a part of the signature; the name of the base is not.
    for (const name of bases) {
      const found = declaredAt({ path: place.path, name })
      if (found !== undefined) visit(owner, found, seen)
    }
  }
  for (const place of exported.filter(concerns)) visit(place.name, place, new Set())
  return [...unnamed].toSorted()
}

function readModule(path: string, source: string): Module {
  const declared = new Map<string, SyntaxNode>()
  const imported = new Map<string, Place>()
  const passedOn = new Map<string, Place>()
  const at = (specifier: string): string => posix.join(posix.dirname(path), specifier)
  for (const statement of nodesOf(parseSync(path, source).program.body)) {
    const from = nodesOf([statement['source']])[0]?.['value']
    const specifiers = nodesOf(statement['specifiers'])
    if (typeof from === 'string') {
      if (!from.startsWith('.')) continue
      for (const specifier of specifiers) {
        const isImport = statement.type === 'ImportDeclaration'
        const [there, here] = isImport ? ['imported', 'local'] : ['local', 'exported']
        const target = isImport ? imported : passedOn
        target.set(nameOf(specifier[here]), { path: at(from), name: nameOf(specifier[there]) })
      }
      continue
    }
    const own = nodesOf([statement['declaration']])[0] ?? statement
    for (const part of own.type === 'VariableDeclaration' ? nodesOf(own['declarations']) : [own])
      if (nameOf(part['id']) !== '') declared.set(nameOf(part['id']), part)
  }
  return { declared, imported, passedOn }
}

/** The names of the types in the signature of a declaration, and of what it extends. */
function typesIn(declaration: SyntaxNode | undefined): { readonly named: Set<string>; readonly bases: Set<string> } {
  const named = new Set<string>()
  const bases = new Set<string>()
  const walk = (node: SyntaxNode, target: Set<string>): void => {
    if (isHidden(node)) return
    if (node.type === 'TSTypeReference') target.add(nameOf(node['typeName']))
    const isBase = node.type === 'TSInterfaceHeritage' || node.type === 'TSClassImplements'
    if (isBase) bases.add(nameOf(node['expression']))
    for (const [field, value] of Object.entries(node)) {
      if (CODE[node.type]?.includes(field) === true) continue
      for (const child of nodesOf(Array.isArray(value) ? value : [value])) walk(child, isBase ? bases : target)
    }
  }
  if (declaration !== undefined) walk(declaration, named)
  return { named, bases }
}

/** Fields of nodes that hold code, which is no part of a signature. */
const CODE: Readonly<Record<string, readonly string[]>> = {
  FunctionDeclaration: ['body'],
  FunctionExpression: ['body'],
  PropertyDefinition: ['value'],
  VariableDeclarator: ['init'],
  AssignmentPattern: ['right'],
}

function isHidden(node: SyntaxNode): boolean {
  const key = nodesOf([node['key']])[0]
  return node['accessibility'] === 'private' || key?.type === 'PrivateIdentifier'
}

function nameOf(node: unknown): string {
  const name = (node as SyntaxNode | null | undefined)?.['name']
  return typeof name === 'string' ? name : ''
}

function nodesOf(values: unknown): SyntaxNode[] {
  if (!Array.isArray(values)) return []
  return values.filter((value): value is SyntaxNode => typeof (value as SyntaxNode | null)?.type === 'string')
}
