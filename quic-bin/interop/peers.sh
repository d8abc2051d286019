# The columns of the table: what each peer can do, and the switches that make it.
#
# A peer is a folder with run-server.sh and run-client.sh, called as
#   run-server.sh HOST PORT CERTS WWW [SWITCHES]
#   run-client.sh HOST PORT CERTS OUT PATH... [SWITCHES]
# What is listed neither in "plain" nor in "with" is a feature that the peer, or its program, doesn't have.

declare -a PEERS_KNOWN=()
declare -A SPEAKS BETWEEN CAN SWITCHES CLIENT_ALPN FINDING

# peer NAME "ALPN..." [CLIENT_ALPN_SWITCH [SEPARATOR]]: the protocols that it speaks, the switch that makes its client
# speak one, and what stands between paths and switches.
peer() {
  PEERS_KNOWN+=("$1")
  SPEAKS[$1]=$2 CLIENT_ALPN[$1]=${3:-} BETWEEN[$1]=${4:-}
}
# plain NAME ROLE FEATURE...: needs no switches.
plain() {
  local name=$1 role=$2 one; shift 2
  for one in "$@"; do CAN[$name.$role.$one]=1; done
}
# with NAME ROLE FEATURE SWITCHES: @STORE@ is a directory that lasts for the row; a client whose switches begin with
# "twice" is run once for the first path and once for the rest.
with() { CAN[$1.$2.$3]=1 SWITCHES[$1.$2.$3]=$4; }
# finding NAME ROLE FEATURE TEXT: why a cell of a peer's role fails, where that has been found out. Shown while it fails.
finding() { FINDING[$1.$2.$3]=$4; }

peer aioquic "hq-interop h3" "--alpn"
plain aioquic server handshake transfer multiplexing http3 key-update resumption zero-rtt v2 compatible rebinding \
  migration client-hello datagrams datagram-echo
with aioquic server retry --retry
with aioquic server chacha20 --chacha20
plain aioquic client handshake transfer multiplexing http3 retry
with aioquic client chacha20 --chacha20
with aioquic client key-update --key-update
with aioquic client resumption --resume
with aioquic client zero-rtt --zero-rtt
with aioquic client v2 "--version v2"
with aioquic client compatible "--version v1-to-v2"
with aioquic client rebinding "--migrate rebind"
with aioquic client migration "--migrate active"

peer quinn "hq-interop h3" "--alpn"
plain quinn server handshake transfer multiplexing http3 key-update ecn resumption zero-rtt rebinding migration \
  client-hello datagrams
with quinn server retry --retry
with quinn server chacha20 --chacha20
plain quinn client handshake transfer multiplexing http3 retry ecn
with quinn client chacha20 --chacha20
with quinn client key-update --key-update
with quinn client resumption --resume
with quinn client zero-rtt --zero-rtt
with quinn client rebinding "--rebind 127.0.0.2"

peer quiche "hq-interop h3" "--alpn"
plain quiche server handshake transfer multiplexing http3 resumption zero-rtt key-update client-hello datagrams
with quiche server retry --retry
plain quiche client handshake transfer multiplexing http3 retry
with quiche client resumption --resume
with quiche client zero-rtt --zero-rtt
finding quiche client zero-rtt "the peer's program, which looks whether it may make requests only after it has read a \
datagram: our first one completes a resumed handshake. Its ClientHello does offer early data (the second one is longer \
than the first by just a PSK and that extension), and behind a Retry the same request arrives in a 0-RTT packet and is \
answered before the handshake is complete. quinn's server doesn't get early data from it, either."

peer s2n-quic "hq-interop"
plain s2n-quic server handshake transfer multiplexing ecn rebinding migration key-update client-hello
with s2n-quic server retry --retry
plain s2n-quic client handshake transfer multiplexing retry ecn

peer ngtcp2 "h3" "" "--"
plain ngtcp2 server handshake transfer multiplexing http3 key-update ecn resumption zero-rtt rebinding migration \
  client-hello
with ngtcp2 server retry -V
with ngtcp2 server chacha20 "--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305"
plain ngtcp2 client handshake transfer multiplexing http3 retry ecn
with ngtcp2 client chacha20 "--ciphers=NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305"
with ngtcp2 client key-update "--key-update=1ms"
with ngtcp2 client resumption "twice --session-file=@STORE@/s --tp-file=@STORE@/t --disable-early-data"
with ngtcp2 client zero-rtt "twice --session-file=@STORE@/s --tp-file=@STORE@/t"
with ngtcp2 client rebinding "--change-local-addr=10ms --nat-rebinding"
finding ngtcp2 client rebinding "nobody's fault, and not in every run. The client changes its address in the middle of a \
download and happens to have nothing to send afterwards: our qlog has probes to the old address until the idle timeout, \
and nothing from the new one, which the server can't know."
with ngtcp2 client migration "--change-local-addr=10ms"
finding ngtcp2 server migration "not in every run, nor with some builds of ours only. Our qlog has the challenge on the \
new path after 43 ms, nothing from there, and the last of the 20 MB after 107 ms: the download is over before this server, \
busy with sending, has answered."

peer picoquic "hq-interop h3" "-a" "--"
plain picoquic server handshake transfer multiplexing http3 key-update ecn resumption zero-rtt v2 compatible rebinding \
  migration client-hello
with picoquic server retry -r
with picoquic server chacha20 "-C 20"
plain picoquic client handshake transfer multiplexing http3 retry ecn
with picoquic client chacha20 "-C 20"
with picoquic client key-update "-u 10"
with picoquic client resumption "twice -T @STORE@/t"
with picoquic client zero-rtt "twice -T @STORE@/t"
with picoquic client v2 "-v 6b3343cf"
with picoquic client compatible "-U 6b3343cf"
finding picoquic client compatible "the peer's fault. The server's first packet in version 2 is an Initial with the \
ServerHello. This client takes it as the sign to change its version, does not decrypt it (\`picoquic_parse_header_and_decrypt\` \
in packet.c), and acknowledges it all the same: our qlog has its next Initial with an ACK of packet 0 and its whole \
ClientHello once more. So the ServerHello counts as delivered and is never repeated. aioquic's server gets through \
because it answers a repeated ClientHello with all its CRYPTO data, acknowledged or not."
with picoquic client rebinding "-f 1"
with picoquic client migration "-f 3"

peer msquic "hq-interop"
# Its server doesn't send version_information, so there is nothing to negotiate compatibly.
plain msquic server handshake transfer multiplexing key-update v2 rebinding migration client-hello
plain msquic client handshake transfer multiplexing retry

peer neqo "hq-interop h3" "--alpn"
plain neqo server handshake transfer multiplexing key-update ecn resumption zero-rtt rebinding migration client-hello
with neqo server http3 "--qns-test http3"
with neqo server retry --retry
with neqo server chacha20 "--qns-test chacha20"
with neqo server v2 "--qns-test v2"
with neqo server compatible "--qns-test v2"
plain neqo client handshake transfer multiplexing http3 retry ecn client-hello
with neqo client chacha20 "--qns-test chacha20"
with neqo client key-update "--qns-test keyupdate"
with neqo client resumption "--qns-test resumption"
with neqo client zero-rtt "--qns-test zerortt"
with neqo client compatible "--qns-test v2"

peer curl_cffi "h3"
plain curl_cffi client handshake transfer multiplexing http3 retry
with curl_cffi client client-hello "--impersonate chrome"
