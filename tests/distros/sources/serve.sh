#!/bin/sh
# A folder over http on the host itself, and a proxy before it. Run once as root.
#   http://mirror.lab:8081   the folder      http://proxy.lab:8082   a proxy that writes what it is asked for to
#   /srv/proxy.log, and refuses while /srv/proxy.refuses exists
# usage: serve.sh ADDRESS FOLDER FILE    (of loopback, each host its own: they share it; a file in the folder, to see that it answers)
set -eu
address=$1 www=$2
echo "$address mirror.lab proxy.lab" >>/etc/hosts
cat >/srv/proxy.py <<'PROGRAM'
# A forward proxy for plain http, as small as can be.
import http.server, os, sys, urllib.error, urllib.request
urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open("/srv/proxy.log", "a") as log:
            log.write(self.path + "\n")
        if os.path.exists("/srv/proxy.refuses"):
            self.send_error(403, "The proxy of the lab refuses")
            return
        try:
            with urllib.request.urlopen(self.path) as answer:
                body, code = answer.read(), answer.status
        except urllib.error.HTTPError as error:
            body, code = b"", error.code
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
    do_HEAD = do_GET  # libzypp looks first
http.server.ThreadingHTTPServer((sys.argv[1], 8082), Proxy).serve_forever()
PROGRAM
systemd-run --quiet --unit lab-mirror python3 -m http.server --bind "$address" --directory "$www" 8081
systemd-run --quiet --unit lab-proxy python3 /srv/proxy.py "$address"
for _try in $(seq 50); do
    python3 -c "import urllib.request as u; u.urlopen('http://$address:8081/$3')" 2>/dev/null && exit 0
    sleep 0.2
done
echo "the mirror does not answer" >&2
exit 1
