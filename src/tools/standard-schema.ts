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

/** The result of a validation: the value to use, or its issues. */
export type SchemaResult<T = unknown> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** One issue and its place. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly unknown[] | undefined
  /** True if the check could not be made: the value may be valid or not. */
  readonly isUnchecked?: true
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

/** A schema of a tool's input or output: of a validation library, or JSON Schema. */
export type ToolSchema = StandardToolSchema | JsonSchemaObject

/** The type of a validated value; a record for JSON Schema, whose types TypeScript cannot infer. */
export type ValueOf<S> = S extends {
  readonly '~standard': { readonly types?: { readonly output: infer T } | undefined }
}
  ? T
  : Readonly<Record<string, unknown>>

/** The type of a value that a schema accepts; unknown for JSON Schema. */
export type AcceptedBy<S> = S extends {
  readonly '~standard': { readonly types?: { readonly input: infer T } | undefined }
}
  ? T
  : unknown

/** True for a schema of a validation library. It may be a function, as those of ArkType are. */
export function isStandardSchema(schema: unknown): schema is StandardToolSchema {
  if ((typeof schema !== 'object' && typeof schema !== 'function') || schema === null) return false
  const standard: unknown = (schema as Partial<StandardToolSchema>)['~standard']
  return typeof standard === 'object' && standard !== null && 'validate' in standard
}
