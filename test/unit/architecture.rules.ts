import { posix } from 'node:path'
import { type Import, readSource } from './architecture.imports.ts'
import type { Room } from './architecture.table.ts'

/** Source text by path (`src/errors/index.ts`). */
export type SourceTree = ReadonlyMap<string, string>

/** Lists every violation of the table in a tree, one sentence each. */
export function findBreaches(tree: SourceTree, rooms: readonly Room[]): string[] {
  const facts = new Map([...tree].map(([path, source]) => [path, readSource(path, source)]))
  const breaches = [...tableBreaches(rooms), ...doorBreaches(tree, rooms)]
  const edges = new Map<string, string[]>()
  for (const [path, { imports, forbidden }] of facts) {
    breaches.push(...forbidden.map((what) => `${path} ${what}`))
    const room = roomOf(path, rooms)
    if (room === undefined) {
      breaches.push(`${path} is in no room`)
      continue
    }
    for (const { specifier } of imports) {
      const problem = importProblem(path, specifier, room, rooms, tree)
      if (problem !== undefined) breaches.push(`${path} ${problem}`)
    }
    edges.set(
      path,
      imports.filter(isRelative).map(({ specifier }) => resolve(path, specifier)),
    )
  }
  const cycle = findCycle(edges)
  if (cycle !== undefined) breaches.push(`import cycle: ${cycle.join(' → ')}`)
  return breaches
}

/** The npm packages that `entry` loads eagerly: reached by static imports of values. */
export function packagesLoadedBy(entry: string, tree: SourceTree): string[] {
  const packages = new Set<string>()
  const seen = new Set<string>()
  const waiting = [entry]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (seen.has(path)) continue
    seen.add(path)
    const source = tree.get(path)
    if (source === undefined) throw new Error(`${path} is imported and does not exist`)
    for (const found of readSource(path, source).imports) {
      if (found.kind !== 'value') continue
      if (isRelative(found)) waiting.push(resolve(path, found.specifier))
      else if (!found.specifier.startsWith('node:')) packages.add(packageOf(found.specifier))
    }
  }
  return [...packages].toSorted()
}

/** One cycle of a graph, its first node repeated at the end, or undefined. */
export function findCycle(edges: ReadonlyMap<string, readonly string[]>): string[] | undefined {
  const done = new Set<string>()
  const visit = (node: string, trail: readonly string[]): string[] | undefined => {
    const start = trail.indexOf(node)
    if (start >= 0) return [...trail.slice(start), node]
    if (done.has(node)) return undefined
    for (const next of edges.get(node) ?? []) {
      const cycle = visit(next, [...trail, node])
      if (cycle !== undefined) return cycle
    }
    done.add(node)
    return undefined
  }
  for (const node of edges.keys()) {
    const cycle = visit(node, [])
    if (cycle !== undefined) return cycle
  }
  return undefined
}

function tableBreaches(rooms: readonly Room[]): string[] {
  const names = new Set(rooms.map((room) => room.name))
  const unknown = rooms.flatMap((room) =>
    room.mayImport
      .filter((name) => !names.has(name))
      .map((name) => `the table lets ${room.name} import ${name}, which is no room`),
  )
  const cycle = findCycle(new Map(rooms.map((room) => [room.name, room.mayImport])))
  return cycle === undefined ? unknown : [...unknown, `the table holds a cycle: ${cycle.join(' → ')}`]
}

function doorBreaches(tree: SourceTree, rooms: readonly Room[]): string[] {
  return rooms.filter((room) => !tree.has(doorOf(room))).map((room) => `the room ${room.name} has no ${doorOf(room)}`)
}

function importProblem(
  path: string,
  specifier: string,
  room: Room,
  rooms: readonly Room[],
  tree: SourceTree,
): string | undefined {
  if (specifier.startsWith('node:')) return undefined
  if (!specifier.startsWith('.')) {
    const name = packageOf(specifier)
    return room.packages.includes(name) ? undefined : `imports the package ${name}, which ${room.name} does not list`
  }
  const target = resolve(path, specifier)
  if (!tree.has(target)) return `imports ${target}, which does not exist`
  const other = roomOf(target, rooms)
  if (other === undefined || other.name === room.name) return undefined
  if (!room.mayImport.includes(other.name)) return `imports ${other.name}, which ${room.name} does not list`
  return target === doorOf(other) ? undefined : `imports ${target} past the door ${doorOf(other)}`
}

function roomOf(path: string, rooms: readonly Room[]): Room | undefined {
  return rooms.find((room) => (room.path.endsWith('/') ? path.startsWith(room.path) : path === room.path))
}

function doorOf(room: Room): string {
  return room.path.endsWith('/') ? `${room.path}${room.door ?? 'index.ts'}` : room.path
}

function isRelative({ specifier }: Import): boolean {
  return specifier.startsWith('.')
}

function resolve(from: string, specifier: string): string {
  return posix.join(posix.dirname(from), specifier)
}

/** `@scope/name` of `@scope/name/deep/path`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}
