/** Options of the Docker engine. */
export interface DockerEngineOptions {
  /** An image with `python3` of at least 3.10. Default `python:3.12-slim`, else `sandglass-python:latest`. */
  readonly image?: string
  /** The Python in the image: a name on its PATH or an absolute path. Default `python3`. */
  readonly python?: string
  /** A runtime that the daemon knows, for example `runsc` (gVisor) or `kata`. Default: the daemon's own. */
  readonly runtime?: string
  /** `unix:///path` or `tcp://host:port`. Default: the environment's DOCKER_HOST, else the local socket. */
  readonly host?: string
  /**
   * Certificates for a `tcp:` host. Default: with DOCKER_TLS_VERIFY in the environment, `ca.pem`, `cert.pem` and `key.pem`
   * below its DOCKER_CERT_PATH (`~/.docker`).
   */
  readonly tls?: DockerTls
  /**
   * Directories and files of the host that scripts may read. Each must be below one of `allowHostPaths`. A script can
   * talk to a server whose socket lies in such a directory.
   */
  readonly resources?: readonly HostResource[]
  /** Absolute paths of the host below which `resources` may lie. Default: none. */
  readonly allowHostPaths?: readonly string[]
  /**
   * Path prefix here → the same directory as the daemon sees it, for a host that runs in a container itself. The longest
   * prefix that fits wins. For a daemon by `tcp:` every directory that is mounted must be in it; `{ '/': '/' }` declares
   * that both see the same files.
   */
  readonly hostPathMap?: Readonly<Record<string, string>>
  /** The time that a container may take to become ready, in milliseconds. Default 30,000. */
  readonly startTimeoutMs?: number
  /**
   * The time that the daemon may take to answer a request, in milliseconds; twice that to make or start a container. Default
   * 10,000.
   */
  readonly apiTimeoutMs?: number
}

/** Certificates and key for a connection by TLS, as PEM texts. */
export interface DockerTls {
  /** Certificate of the authority that signed the daemon's. */
  readonly ca: string | Uint8Array
  /** Certificate of this client. */
  readonly cert: string | Uint8Array
  /** Private key of this client. */
  readonly key: string | Uint8Array
}

/** A file or directory of the host that is mounted read-only. */
export interface HostResource {
  /** Absolute path on the host. */
  readonly source: string
  /** Absolute path in the sandbox. */
  readonly target: string
}
