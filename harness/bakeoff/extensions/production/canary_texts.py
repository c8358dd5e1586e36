"""The texts that a canary asks for: both roles, several lengths, several scripts. Pinned: a change loses recordings."""

from __future__ import annotations

QUERIES = (
    "refund", "NASA", "e=mc²", "how do I reset my password", "cheap flights to Lisbon in March",
    "difference between TCP and UDP", "symptoms of iron deficiency", "who painted the ceiling of the Sistine Chapel",
    "best pasta recipe without garlic", "is it legal to record a phone call", "python sort dictionary by value",
    "error 0x80070057 when copying files", "what is the boiling point of water at 3000 m altitude",
    "restaurants open now near the main station", "why does my sourdough not rise in winter",
    "explain like I am five: how do vaccines work", "wie lange ist ein Reisepass gültig",
    "quelle est la capitale de l'Australie", "¿cómo se conjuga el verbo ir en pasado?", "как приготовить борщ",
    "ποια είναι η μεγαλύτερη λίμνη της Ελλάδας", "ما هي عاصمة المغرب", "מתי נוסדה העיר חיפה", "दिल्ली का मौसम कैसा है",
    "长城有多长", "東京から京都まで新幹線で何分", "서울에서 부산까지 얼마나 걸리나요", "ต้มยำกุ้งทำอย่างไร",
    "SELECT name FROM users WHERE id = 42", "🙂 emoji meaning 🚀", "1234 5678 90", "not a question, just a few words",
)  # fmt: skip

_SENTENCES = (
    "The lighthouse was built in 1887 and is still in use, although nobody has lived there since 1961.",
    "A transaction is either applied as a whole or not at all; readers never see one half of it.",
    "To change the filter, switch the machine off, wait until it has cooled down, and turn the lid to the left.",
    "Photosynthesis turns light, water and carbon dioxide into sugar and oxygen, mostly in the leaves.",
    "The committee met on Tuesday and postponed the decision about the bridge for the third time.",
    "Interest is calculated daily on the outstanding balance and charged at the end of each month.",
    "In the second half the visitors pressed high, won the ball early and scored twice within five minutes.",
    "Granite is a coarse-grained rock that forms when magma cools slowly below the surface.",
)

DOCUMENTS = (
    *_SENTENCES,
    " ".join(_SENTENCES[:2]), " ".join(_SENTENCES[2:4]), " ".join(_SENTENCES[4:7]), " ".join(_SENTENCES[1:6]),
    " ".join(_SENTENCES), " ".join(_SENTENCES * 2), " ".join(_SENTENCES * 4), " ".join(reversed(_SENTENCES)),
    "Red.", "Opening hours", "Terms and conditions apply.", "def add(a, b):\n    return a + b",
    '{"id": 7, "status": "shipped", "items": [{"sku": "A-1", "count": 3}]}',
    "Der Zug nach Leipzig fährt heute von Gleis sieben und hat etwa zehn Minuten Verspätung.",
    "Le musée est fermé le mardi; l'entrée est gratuite le premier dimanche du mois.",
    "El puente romano cruza el río desde hace casi dos mil años y sigue abierto a los peatones.",
    "Озеро замерзает в ноябре, и до весны по льду можно дойти до острова.",
    "Το λιμάνι βρίσκεται στη βόρεια πλευρά του νησιού και είναι ανοιχτό όλο τον χρόνο.",
    "تأسست المكتبة قبل مئة عام وتضم أكثر من خمسين ألف كتاب.",
    "הספרייה פתוחה בימי ראשון עד חמישי משעה תשע בבוקר.",
    "यह पुल नदी के दोनों किनारों को जोड़ता है और रात में रोशनी से चमकता है।",
    "这座图书馆建于一九一二年，藏书超过十万册，每天上午九点开门。",
    "この駅は市の中心にあり、毎日およそ二万人が利用しています。",
    "이 박물관은 월요일에 쉬며 매달 마지막 수요일에는 무료로 볼 수 있습니다.",
)  # fmt: skip

assert len(QUERIES) == len(DOCUMENTS) == 32
