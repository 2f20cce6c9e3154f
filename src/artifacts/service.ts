import type { StoreContent } from '../stores/index.ts'

/**
 * The owner of artifacts: each session has its own. Artifacts whose names begin with `user:` belong to the user and are the same in all sessions
 * of the user in an application. Absent ids are empty.
 */
export interface ArtifactSession {
  readonly appName?: string
  readonly userId?: string
  readonly sessionId?: string
}

/** One version of an artifact, without its content. */
export interface ArtifactInfo {
  readonly name: string
  /** Starts at 0 and grows by one with each save. The number of a deleted version is not used again. */
  readonly version: number
  readonly mimeType: string
  /** Bytes. */
  readonly size: number
  /** SHA-256 of the content, in hexadecimal. */
  readonly sha256: string
  /** ISO 8601, UTC, by the clock of the host that saved it. */
  readonly savedAt: string
}

/** One version of an artifact, in memory. */
export interface LoadedArtifact extends ArtifactInfo {
  readonly data: Uint8Array
}

/** One version of an artifact, to be read piece by piece. */
export interface OpenedArtifact extends ArtifactInfo {
  /**
   * The content. It fails with SandglassError `store_damaged`, before its last piece, if the content is not what was saved.
   */
  readonly stream: ReadableStream<Uint8Array>
}

/** Options of every method of an {@link ArtifactService}. */
export interface ArtifactOptions {
  /** Default: the session of `withArtifactSession`, or the one without any id. */
  readonly session?: ArtifactSession | undefined
  readonly signal?: AbortSignal | undefined
}

/** Options of {@link ArtifactService.save}. */
export interface SaveArtifactOptions extends ArtifactOptions {
  /** Default: by the name's suffix, else application/octet-stream. */
  readonly mimeType?: string | undefined
}

/** Options of {@link ArtifactService.load} and {@link ArtifactService.open}. */
export interface LoadArtifactOptions extends ArtifactOptions {
  /** Default: the latest. */
  readonly version?: number | undefined
}

/** Options of {@link ArtifactService.saveTo}. */
export interface SaveToOptions extends LoadArtifactOptions {
  /** True to replace an existing file. Default false. */
  readonly overwrite?: boolean | undefined
}

/** Options of {@link ArtifactService.delete}. */
export interface DeleteArtifactOptions extends ArtifactOptions {
  /** Default: all of them. */
  readonly version?: number | undefined
}

/**
 * Named, versioned results worth keeping. Every method may throw SandglassError `invalid_request` for a name, version, session or
 * MIME type that cannot be used, `aborted`, and those of its {@link Store}.
 */
export interface ArtifactService {
  /**
   * Stores content as the next version. It becomes visible to every process when the promise is fulfilled, and not before.
   * @param content bytes, a string (UTF-8), a stream or a regular file, `{ path }`. The host holds only some pieces of the last two in memory.
   * @throws SandglassError also `too_large`, for content above the limit of the service, and for one version too many.
   */
  save(name: string, content: StoreContent, options?: SaveArtifactOptions): Promise<ArtifactInfo>
  /**
   * A version with its content in memory.
   * @throws SandglassError `artifact_not_found`; `too_large`, for more than 256 MiB: use `open`; `store_damaged`.
   */
  load(name: string, options?: LoadArtifactOptions): Promise<LoadedArtifact>
  /** A version with its content as a stream. @throws SandglassError `artifact_not_found`. */
  open(name: string, options?: LoadArtifactOptions): Promise<OpenedArtifact>
  /**
   * Writes a version to a file of the host, the fastest way for large content. The file appears only after all of it was written and checked.
   * @throws SandglassError `artifact_not_found`; `store_damaged`; `invalid_request` for a file that exists or cannot be written.
   */
  saveTo(name: string, path: string, options?: SaveToOptions): Promise<ArtifactInfo>
  /** The latest version of each artifact of the session and of its user, sorted by name. */
  list(options?: ArtifactOptions): Promise<readonly ArtifactInfo[]>
  /** The versions of an artifact, the oldest first; empty for one that does not exist. */
  versions(name: string, options?: ArtifactOptions): Promise<readonly ArtifactInfo[]>
  /** Deletes a version, or all versions. Returns the deleted ones. `prune` removes their content. */
  delete(name: string, options?: DeleteArtifactOptions): Promise<readonly ArtifactInfo[]>
  /**
   * Removes content that no version of any session has, and that was saved more than an hour ago: younger content may belong to a
   * save in progress. Returns the number of bytes that it removed.
   */
  prune(): Promise<number>
}
