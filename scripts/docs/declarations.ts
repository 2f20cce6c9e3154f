import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync, type TSInterfaceDeclaration, type TSInterfaceHeritage, type TSPropertySignature } from 'oxc-parser'

/** Its types have the names of another library, and some of them are taken. */
const OTHER_NAMES = 'workspace-api/'

/** A member of an interface, as its declaration and its doc comment describe it. */
export interface Member {
  readonly name: string
  readonly required: boolean
  /** The type as the source writes it, without `| undefined`. */
  readonly type: string
  /** The doc comment as one paragraph of Markdown; empty without one. */
  readonly comment: string
}

/** Members by the name of a type that no interface declares, such as one that is mapped from a table. */
export type ComputedTypes = ReadonlyMap<string, readonly Member[]>

/** The exported interfaces and type aliases of source files. */
export class Declarations {
  readonly #interfaces: ReadonlyMap<string, Declared>
  readonly #aliases: ReadonlyMap<string, string>

  readonly #computed: ReadonlyMap<string, readonly Member[]>

  private constructor(sources: readonly (readonly [path: string, text: string])[], computed: ComputedTypes) {
    this.#computed = computed
    const found = sources.map(([path, text]) => exportedTypes(path, text))
    this.#interfaces = new Map(found.flatMap(({ interfaces }) => interfaces))
    this.#aliases = new Map(found.flatMap(({ aliases }) => aliases))
  }

  /** Reads every TypeScript file of a folder of the tree. A type that another computes has its members from the caller. */
  static of(folder: string, computed: ComputedTypes = new Map()): Declarations {
    const root = resolve(import.meta.dirname, '../..', folder)
    const paths = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.ts') && !path.startsWith(OTHER_NAMES),
    )
    const sources = paths.toSorted().map((path) => [path, readFileSync(join(root, path), 'utf8')] as const)
    return new Declarations(sources, computed)
  }

  /** Reads the given sources by path. */
  static ofSources(sources: readonly (readonly [path: string, text: string])[]): Declarations {
    return new Declarations(sources, new Map())
  }

  /** The type behind an alias as its source writes it; undefined for any other name. */
  aliasOf(name: string): string | undefined {
    return this.#aliases.get(name)
  }

  /**
   * The members of an interface, inherited ones first.
   * @throws Error for an unknown interface, and for an `extends` clause of an unsupported form.
   */
  membersOf(name: string): Member[] {
    const computed = this.#computed.get(name)
    if (computed !== undefined) return [...computed]
    const declared = this.#find(name)
    const members = new Map<string, Member>()
    for (const clause of declared.node.extends) {
      for (const member of this.#membersOfClause(clause, declared.source)) members.set(member.name, member)
    }
    for (const member of this.#own(declared)) members.set(member.name, member)
    return [...members.values()]
  }

  #find(name: string): Declared {
    const declared = this.#interfaces.get(name)
    if (declared === undefined) throw new Error(`there is no interface ${name}`)
    return declared
  }

  #own({ node, source, comments }: Declared): Member[] {
    return node.body.body
      .filter((member) => member.type === 'TSPropertySignature')
      .map((member) => this.#memberOf(member, source, comments))
  }

  #memberOf(node: TSPropertySignature, source: string, comments: readonly Comment[]): Member {
    const name = source.slice(node.key.start, node.key.end)
    const annotation = node.typeAnnotation?.typeAnnotation
    const type = annotation === undefined ? 'unknown' : source.slice(annotation.start, annotation.end)
    const comment = commentBefore(node.start, source, comments)
    const [, owner = '', member = ''] = /^(\w+)\['(\w+)'\]$/.exec(type) ?? []
    const referred = owner === '' ? undefined : this.membersOf(owner).find((other) => other.name === member)
    return {
      name,
      required: !node.optional,
      type: referred?.type ?? tidyType(type),
      comment: comment === '' ? (referred?.comment ?? '') : comment,
    }
  }

  #membersOfClause(clause: TSInterfaceHeritage, source: string): Member[] {
    const text = source.slice(clause.start, clause.end)
    const [, wrapper = '', base = '', rest = ''] = /^(?:(Omit|Partial|Pick)<\s*)?(\w+)(.*)$/s.exec(text) ?? []
    const members = this.membersOf(base)
    if (wrapper === 'Partial') return members.map((member) => ({ ...member, required: false }))
    if (wrapper === '') return members
    const named = new Set([...rest.matchAll(/'(\w+)'/g)].map(([, name = '']) => name))
    if (named.size === 0) throw new Error(`cannot read the clause ${text}`)
    return members.filter(({ name }) => named.has(name) === (wrapper === 'Pick'))
  }
}

interface Comment {
  readonly value: string
  readonly end: number
}

interface Declared {
  readonly node: TSInterfaceDeclaration
  readonly source: string
  readonly comments: readonly Comment[]
}

interface ExportedTypes {
  readonly interfaces: readonly (readonly [name: string, declared: Declared])[]
  readonly aliases: readonly (readonly [name: string, type: string])[]
}

function exportedTypes(path: string, source: string): ExportedTypes {
  const { program, comments } = parseSync(path, source)
  const nodes = program.body.flatMap((statement) =>
    statement.type === 'ExportNamedDeclaration' && statement.declaration !== null ? [statement.declaration] : [],
  )
  return {
    interfaces: nodes.flatMap((node) =>
      node.type === 'TSInterfaceDeclaration' ? [[node.id.name, { node, source, comments }] as const] : [],
    ),
    aliases: nodes.flatMap((node) =>
      node.type === 'TSTypeAliasDeclaration'
        ? [[node.id.name, tidyType(source.slice(node.typeAnnotation.start, node.typeAnnotation.end))] as const]
        : [],
    ),
  }
}

/** The doc comment directly before this position, except for white space. */
function commentBefore(place: number, source: string, comments: readonly Comment[]): string {
  const found = comments.findLast(({ end }) => end <= place && source.slice(end, place).trim() === '')
  if (found === undefined || !found.value.startsWith('*')) return ''
  return found.value
    .replaceAll(/^\s*\*+ ?/gm, '')
    .replace(/^@\w+[^]*/m, '')
    .replaceAll(/\{@link (\w+)\}/g, '`$1`')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function tidyType(type: string): string {
  const text = type.replaceAll(/\s+/g, ' ').replace(/ \| undefined$/, '')
  // Parentheses that only held the function type apart from `| undefined`.
  return text === type ? text : text.replace(/^\((\(.*)\)$/, '$1')
}
