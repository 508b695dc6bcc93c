"""Words that the matching of constraints knows: one thing in two languages, and what stands beside a word.

Small on purpose. A thing that is not listed is matched by its own word, in whatever script; what is listed is
found in an item that was described in the other language.
"""

from __future__ import annotations

__all__ = [
    "BEARERS",
    "CHINESE_DENIALS",
    "CHINESE_NO_DENIALS",
    "DENIALS_AFTER",
    "DENIALS_BEFORE",
    "DENIALS_OF_TWO",
    "EATEN",
    "FILLERS",
    "IMITATIONS",
    "MADE_OF",
    "NOT_A_DENIAL",
    "QUALITIES",
    "SAME",
    "STRADDLING",
    "TURNS",
    "UNRELATED",
]

# One thing a line: its words in English, then in Chinese, in both ways of writing where they differ; `_` is
# the blank of a phrase. What `~` precedes names the thing and is not looked for, since as a word it means
# other things too; what `^` precedes is looked for and does not name it.
_GROUPS = """
plastic 塑料 塑胶 塑膠
leather 皮革 真皮 皮
metal 金属 金屬
wood wooden 木头 木質 木质 木
glass 玻璃
cotton 棉 纯棉 全棉
wool woolen woollen 羊毛 毛料
polyester 涤纶 滌綸 聚酯
synthetic synthetics 化纤 化纖
silk 丝绸 真丝 蚕丝
rubber latex 橡胶 橡膠 乳胶
paper 纸质 纸
ceramic ceramics 陶瓷
fur 皮草 毛皮
~down goose_down duck_down down_jacket down_filled 羽绒 羽絨
linen 亚麻 亞麻
nylon 尼龙 尼龍
bamboo 竹子 竹制 竹
silicone 硅胶 矽膠
red 红色 紅色 红
blue 蓝色 藍色 蓝
green 绿色 綠色 绿
black 黑色 黑
white 白色 白
yellow 黄色 黃色 黄
pink 粉色 粉红
purple 紫色 紫
grey gray 灰色 灰
brown 棕色 褐色 咖啡色
beige 米色
~orange_color ^orange 橙色 橘色
~neutral neutral_color neutral_colour 中性色
gold golden 金色
silver 银色 銀色
peanut 花生
nut 坚果 堅果
shellfish 贝类 甲壳类
seafood 海鲜 海鮮
dairy 乳制品 奶制品
lactose 乳糖
milk 牛奶
wheat 小麦
gluten 麸质 麩質
egg 鸡蛋 雞蛋
soy soya 大豆 豆制品
sesame 芝麻
honey 蜂蜜
sugar 糖
pork 猪肉 豬肉
beef 牛肉
mutton lamb 羊肉
chicken 鸡肉 雞肉
meat 肉 荤
red_meat 红肉
fish 鱼 魚
cilantro coriander 香菜
onion 洋葱
garlic 大蒜 蒜
mushroom 蘑菇 菌菇
olive 橄榄
coconut 椰子
tomato 番茄 西红柿
spicy ~spicy_food 辣 麻辣
sweets 甜食 甜品
~fried_food fried deep_fried 油炸
palm_oil 棕榈油
coffee 咖啡
tea 茶
green_tea 绿茶
alcohol 酒精 酒
caffeine 咖啡因
organic 有机 有機
vegetarian veggie 素食 吃素 素菜
vegan plant_based 纯素
halal 清真
gluten_free 无麸质
"""


def _groups() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in _GROUPS.split("\n"):
        words = [word.replace("_", " ") for word in line.split()]
        names = frozenset(word.removeprefix("^") for word in words if word[0] != "~")
        found |= {word.removeprefix("~"): names for word in words if word[0] != "^"}
    return found


# A word that names a thing -> all words by which it is found.
SAME = _groups()

# "no plastic", "non-plastic", "without any plastic"; a filler may stand between.
DENIALS_BEFORE = frozenset("no non not without zero sans neither nor isn't aren't".split())
FILLERS = frozenset("any added real genuine actual the a".split())
# What turns a denial round: "not plastic-free".
TURNS = frozenset("not isn't aren't never longer hardly".split())
# Of two words: "free of plastic", "instead of plastic".
DENIALS_OF_TWO = frozenset(
    {("free", "of"), ("free", "from"), ("instead", "of"), ("rather", "than"), ("alternative", "to")}
)
# "plastic-free", "plasticless" is a word of its own.
DENIALS_AFTER = frozenset({"free"})
# "Plastic free shipping" says nothing about the plastic.
NOT_A_DENIAL = frozenset("shipping delivery gift gifts returns return postage trial size sample".split())
# "faux leather" is none.
IMITATIONS = frozenset("faux fake vegan imitation mock".split())

# Chinese: what stands directly before a word and says that it is not so.
CHINESE_DENIALS = (
    *(
        "不含有",
        "不含",
        "不是",
        "不用",
        "不带",
        "不帶",
        "没有",
        "沒有",
        "拒绝",
        "拒絕",
        "告别",
        "代替",
        "替代",
    ),
    *("无", "無", "非", "零", "免", "不", "没", "沒", "去", "仿"),
)
# What ends like a denial and is none.
CHINESE_NO_DENIALS = (
    *("是不是", "有没有", "有沒有", "有无", "过去", "過去", "除非"),
    *(
        "不是不含",
        "不是无",
        "不是無",
        "不是非",
        "并非不含",
        "並非不含",
        "并非无",
        "並非無",
        "没有不含",
        "沒有不含",
        "不无",
        "不無",
    ),
)

# A single character is part of hundreds of words. It is the thing itself only where it stands alone, behind
# what says of what something is made, or before what has a quality or is made of something.
MADE_OF = frozenset("纯純真全实實原含带帶有偏深浅淺淡牛羊猪鹿蛇微中特重香麻酸甜")
QUALITIES = frozenset("色质質制製料材革味款系调調的底")
BEARERS = frozenset(
    "鞋包带帶衣具箱靴夹夾裤褲套椅垫墊袋盒桌床柜櫃帽袜襪裙杯锅鍋壶壺碗盘盤凳篮籃毯巾衫架板箸筷框"
)
# What is eaten is in nearly every word that has its character, so there it is the exceptions that are listed.
EATEN = frozenset("肉鱼魚糖酒茶蒜辣荤")
# Words in which the character has become something else, although a rule above would fit.
UNRELATED = frozenset(
    "红包 紅包 皮纸 皮紙 "
    "黑板 白板 白带 肌肉 多肉 鱼竿 鱼尾 鳄鱼 木鱼 酒店 酒红 酒杯 酒架 茶几 茶杯 茶色 茶壶".split()
)

# Common words that may straddle the border of a longer one: 黄金属于 holds no 金属, 和服务 no 和服.
STRADDLING = frozenset(
    "属于 屬於 于是 服务 服務 服饰 服飾 服装 如果 因为 但是 可以 已经 对于 关于 由于 等于 用于 适用 "
    "有机 机会 会员 学生 生活 活动 动物 物品 品牌 牌子 和平 平台".split()
)
