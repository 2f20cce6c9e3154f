import { parseSync, Visitor } from 'oxc-parser'

/** One `import`, `export … from` or `import()` of a source file. */
export interface Import {
  readonly specifier: string
  readonly kind: 'value' | 'type' | 'dynamic'
}

/** The imports and the forbidden syntax of one source file, for the architecture rules. */
export interface SourceFacts {
  readonly imports: readonly Import[]
  /** Descriptions of syntax that no source file may contain. */
  readonly forbidden: readonly string[]
}

/** Parses one TypeScript file. */
export function readSource(path: string, source: string): SourceFacts {
  const { program, module, errors } = parseSync(path, source)
  const forbidden = errors.map((error) => `does not parse: ${error.message}`)

  const imports: Import[] = []
  for (const { moduleRequest, entries } of module.staticImports) {
    const typeOnly = entries.length > 0 && entries.every((entry) => entry.isType)
    imports.push({ specifier: moduleRequest.value, kind: typeOnly ? 'type' : 'value' })
  }
  for (const entry of module.staticExports.flatMap((statement) => statement.entries)) {
    const { kind, name } = entry.exportName
    if ((kind as string) === 'Default' || name === 'default') forbidden.push('has a default export')
    if (entry.moduleRequest === null) continue
    imports.push({ specifier: entry.moduleRequest.value, kind: entry.isType ? 'type' : 'value' })
  }
  new Visitor({
    ImportExpression({ source: request }) {
      if (request.type === 'Literal' && typeof request.value === 'string') {
        imports.push({ specifier: request.value, kind: 'dynamic' })
      } else {
        forbidden.push('imports a computed specifier')
      }
    },
    // A type such as `import('./x.ts').Y`.
    TSImportType({ source: request }) {
      imports.push({ specifier: request.value, kind: 'type' })
    },
    TSAnyKeyword() {
      forbidden.push('uses the type any')
    },
  }).visit(program)
  return { imports: distinct(imports), forbidden: [...new Set(forbidden)] }
}

function distinct(imports: readonly Import[]): Import[] {
  return [...new Map(imports.map((entry) => [`${entry.kind} ${entry.specifier}`, entry])).values()]
}
