"""Write the certificate's JSON schema next to its code: what other programs may rely on."""

import json
from pathlib import Path

from onedraw.release.certificate import Certificate

TARGET = Path(__file__).parent.parent / "src" / "onedraw" / "release" / "certificate.schema.json"
TARGET.write_text(json.dumps(Certificate.model_json_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
