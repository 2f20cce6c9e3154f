/**
 * A schema of a validation library: zod 4, ArkType, Valibot and others. The part of the Standard Schema specification
 * (standardschema.dev, version 1) and of its JSON Schema extension that tools use.
 */
export interface StandardToolSchema<T = unknown> {
  readonly '~standard': {
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>
    readonly jsonSchema?: {
      readonly input: (options: ConversionOptions) => Record<string, unknown>
      readonly output: (options: ConversionOptions) => Record<string, unknown>
    }
    readonly types?: { readonly input: unknown; readonly output: T } | undefined
  }
}

/** What a schema says of a value: the value as it is to be used, or what is wrong with it. */
export type SchemaResult<T = unknown> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** One thing that is wrong, and where. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly unknown[] | undefined
}

interface ConversionOptions {
  // The specification's own type lists the known ones and any other string.
  readonly target: 'draft-2020-12'
  readonly libraryOptions?: Record<string, unknown> | undefined
}

/** JSON Schema, 2020-12 or draft-07, as plain data. */
export interface JsonSchemaObject {
  readonly [keyword: string]: unknown
}

/** How a tool says what it takes or gives: a schema of a validation library, or JSON Schema. */
export type ToolSchema = StandardToolSchema | JsonSchemaObject

/** What a value is after it passed the schema; a record for JSON Schema, whose types TypeScript cannot see. */
export type ValueOf<S> = S extends {
  readonly '~standard': { readonly types?: { readonly output: infer T } | undefined }
}
  ? T
  : Readonly<Record<string, unknown>>

/** Whether a schema is one of a validation library. Schemas may be functions (ArkType's are). */
export function isStandardSchema(schema: unknown): schema is StandardToolSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard: unknown = (schema as Partial<StandardToolSchema>)['~standard']
  return typeof standard === 'object' && standard !== null && 'validate' in standard
}
