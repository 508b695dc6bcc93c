"""Letters that look like other letters, and traditional characters beside their simplified ones.

Only what attackers use to slip a word past a reader of Latin or simplified Chinese is here; the full table of
Unicode confusables would also fold letters that ordinary texts need apart.
"""

from __future__ import annotations

__all__ = ["LOOK_ALIKES"]

_PAIRS = {
    # Cyrillic
    "абвгеёзикмнорстухѕіјһԁԛԝүѵһьлп": "abbreezukmhopctyxsijhdqwyvhbln",
    "АВЕЅІЈКМНОРСТУХԚԜЗ": "ABESIJKMHOPCTYXQWE",
    # Greek
    "αβγεζηικνοπρστυχωϲϳ": "abyeznikvonpotuxwcj",
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ": "ABEZHIKMNOPTYXC",
    # Armenian, Cherokee, phonetic and Turkish letters
    "օսոհցզգԁȷıɡɑʀɪɴʟᴏᴘᴄᴅᴇᴜᴠᴡᴢᴀʙɢʜᴊᴋᴍꜱᴛʏꜰʋɩ": "ounhgqqdjigarinlopcdeuvwzabghjkmstyfvi",
    "ᎪᏴᏟᎠᎬᏀᎻᏆᎫᏦᏞᎷᏢᏒᏚᎢᏙᎳᏃ": "ABCDEGHIJKLMPRSTVWZ",
    # Signs and Latin letters that have no decomposition
    "øłđħŧæ∂ℓ×ⅼǃ": "oldhtadlxl!",
    "、‐‑‒–—−∕⁄": ",------//",
    "“”„‟«»‘’‚‛「」『』": '""""""\'\'\'\'""""',
    # Traditional Chinese characters of the words that the patterns know
    "無視則權員個這請記憶對話發轉賬帳戶號碼認": "无视则权员个这请记忆对话发转账帐户号码认",
    "證審檢關閉開過繞驗訊說問應該將從現後當時": "证审检关闭开过绕验讯说问应该将从现后当时",
    "內據資檔備傳給與於為會讓間種來執刪輸產業": "内据资档备传给与于为会让间种来执删输产业",
    "網絡連結務專機級設統經總論導複製貼郵達擁": "网络连结务专机级设统经总论导复制贴邮达拥",
    "賦許隱瞞議條約規範準聽麼別進還題買賣錢銀": "赋许隐瞒议条约规范准听么别进还题买卖钱银",
    "腳測試閱讀寫覽歷錄屬標頭隨動斷際處單階庫": "脚测试阅读写览历录属标头随动断际处单阶库",
    "鑰鎖環變響誤復參數盤們實體訴無圖導買誰電": "钥锁环变响误复参数盘们实体诉无图导买谁电",
    "腦軟體載點擊廢棄觸線": "脑软体载点击废弃触线",
}

LOOK_ALIKES: dict[str, str] = {
    look_alike: letter
    for row, letters in _PAIRS.items()
    for look_alike, letter in zip(row, letters, strict=True)
}
