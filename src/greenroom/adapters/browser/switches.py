"""The switches of Chromium: nothing leaves but through the gate, nothing is fetched that no page asks for.

playwright sets many already (no background networking, no component updates, no first run, a pipe and no port for
whoever leads it); these come to them.
"""

from __future__ import annotations

from typing import Final

OFF: Final = (
    # What would ask Chromium's own services, of its own accord.
    *("AutofillServerCommunication", "NetworkTimeServiceQuerying", "OptimizationHints", "MediaRouter", "Translate"),
    *("PreconnectToSearch", "SafeBrowsingHashPrefixRealTimeLookups", "OptimizationGuideModelDownloading", "AimEnabled"),
    *("LensOverlay", "InterestFeedContentSuggestions", "CertificateTransparencyComponentUpdater"),
    # What playwright turns off to lead it: of two such switches only the last one counts.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "PaintHolding", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect"),
)
"""Parts of Chromium that are not wanted."""

SWITCHES: Final = (
    # Names are the proxy's to resolve: Chromium itself asks nobody, so it cannot be told another address later.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # HTTP/3 goes around proxies. What WebRTC does is a preference (`den.py`), and the keeper closes UDP altogether.
    "--disable-quic",
    f"--disable-features={','.join(OFF)}",
    # Whom it would ask who is signed in: nobody.
    "--gaia-url=https://127.0.0.1:1",
    "--no-pings",
    "--disable-domain-reliability",
    "--media-router=0",
    "--disable-notifications",
    "--deny-permission-prompts",
    "--disable-print-preview",
    "--disable-speech-api",
)
