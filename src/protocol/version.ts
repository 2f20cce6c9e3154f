/** Version of the wire protocol; a harness with another version is refused. */
export const PROTOCOL_VERSION = 2
