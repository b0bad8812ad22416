// The first character of a character's canonical decomposition: a letter without its accents.
#include "tokenizer/decomposition.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/utf8.h"

namespace tokenizer {
namespace {

// Characters from `first` on, and what each becomes; some between are unchanged. From the Unicode
// Character Database 14, without combining marks and Hangul syllables.
struct Run {
  char32_t first;
  std::string_view becomes;
};
// clang-format off
constexpr Run kRuns[] = {
    {0xC0, "AAAAAAÆCEEEEIIIIÐNOOOOO×ØUUUUYÞßaaaaaaæceeeeiiiiðnooooo÷øuuuuyþyAaAaAaCcCcCcCcDd"
         "ĐđEeEeEeEeEeGgGgGgGgHhĦħIiIiIiIiIıĲĳJjKkĸLlLlLl"},
    {0x143, "NnNnNnŉŊŋOoOoOoŒœRrRrRrSsSsSsSsTtTtŦŧUuUuUuUuUuUuWwYyYZzZzZz"}, {0x1A0, "Oo"},
    {0x1AF, "Uu"},
    {0x1CD, "AaIiOoUuUuUuUuUuǝAaAaÆæǤǥGgKkOoOoƷʒjǱǲǳGgǶǷNnAaÆæØøAaAaEeEeIiIiOoOoRrRrUuUuSsTt"
         "ȜȝHh"}, {0x226, "AaEeOoOoOoOoYy"}, {0x374, "ʹ"}, {0x37E, ";"}, {0x385, "¨Α·ΕΗΙ"},
    {0x38C, "Ο"}, {0x38E, "ΥΩι"}, {0x3AA, "ΙΥαεηιυ"}, {0x3CA, "ιυουω"}, {0x3D3, "ϒϒ"},
    {0x400, "ЕЕЂГЄЅІІ"}, {0x40C, "КИУ"}, {0x419, "И"}, {0x439, "и"}, {0x450, "ееђгєѕіі"},
    {0x45C, "киу"}, {0x476, "Ѵѵ"}, {0x4C1, "Жж"},
    {0x4D0, "АаАаӔӕЕеӘәӘәЖжЗзӠӡИиИиОоӨөӨөЭэУуУуУуЧчӶӷЫы"}, {0x622, "ااواي"}, {0x6C0, "ەہہ"},
    {0x6D3, "ے"}, {0x929, "न"}, {0x931, "रलळळ"}, {0x958, "कखगजडढफय"}, {0x9DC, "ডঢ"},
    {0x9DF, "য"}, {0xA33, "ਲ"}, {0xA36, "ਸ"}, {0xA59, "ਖਗਜ"}, {0xA5E, "ਫ"}, {0xB5C, "ଡଢ"},
    {0xB94, "ஒ"}, {0xF43, "ག"}, {0xF4D, "ཌ"}, {0xF52, "ད"}, {0xF57, "བ"}, {0xF5C, "ཛ"},
    {0xF69, "ཀ"}, {0x1026, "ဥ"}, {0x1B06, "ᬅᬇᬇᬉᬉᬋᬋᬍᬍᬏᬐᬑᬑ"},
    {0x1E00, "AaBbBbBbCcDdDdDdDdDdEeEeEeEeEeFfGgHhHhHhHhHhIiIiKkKkKkLlLlLlLlMmMmMmNnNnNnNnOo"
         "OoOoOoPpPpRrRrRrRrSsSsSsSsSsTtTtTtTtUuUuUuUuUuVvVvWwWwWwWwWwXxXxYyZzZzZzhtwyẚſ"},
    {0x1EA0, "AaAaAaAaAaAaAaAaAaAaAaAaEeEeEeEeEeEeEeEeIiIiOoOoOoOoOoOoOoOoOoOoOoOoUuUuUuUuUu"
         "UuUuYyYyYyYy"}, {0x1F00, "ααααααααΑΑΑΑΑΑΑΑεεεεεε"}, {0x1F18, "ΕΕΕΕΕΕ"},
    {0x1F20, "ηηηηηηηηΗΗΗΗΗΗΗΗιιιιιιιιΙΙΙΙΙΙΙΙοοοοοο"}, {0x1F48, "ΟΟΟΟΟΟ"}, {0x1F50, "υυυυυυυυ"},
    {0x1F59, "Υ"}, {0x1F5B, "Υ"}, {0x1F5D, "Υ"}, {0x1F5F, "ΥωωωωωωωωΩΩΩΩΩΩΩΩααεεηηιιοουυωω"},
    {0x1F80, "ααααααααΑΑΑΑΑΑΑΑηηηηηηηηΗΗΗΗΗΗΗΗωωωωωωωωΩΩΩΩΩΩΩΩααααα"},
    {0x1FB6, "ααΑΑΑΑΑ᾽ι᾿῀¨ηηη"}, {0x1FC6, "ηηΕΕΗΗΗ᾿᾿᾿ιιιι"}, {0x1FD6, "ιιΙΙΙΙ"},
    {0x1FDD, "῾῾῾υυυυρρυυΥΥΥΥΡ¨¨`"}, {0x1FF2, "ωωω"}, {0x1FF6, "ωωΟΟΩΩΩ´"}, {0x2000, "  "},
    {0x2126, "Ω℧ℨ℩KA"}, {0x219A, "←→"}, {0x21AE, "↔"}, {0x21CD, "⇐⇔⇒"}, {0x2204, "∃"},
    {0x2209, "∈∊∋∋"}, {0x2224, "∣∥∥"}, {0x2241, "∼≂≃≃≅≆≅≈≈"}, {0x2260, "=≡≡"},
    {0x226D, "≍<>≤≥≲≳≲≳≶≷≶≷"}, {0x2280, "≺≻⊂⊃⊂⊃⊆⊇⊆⊇"}, {0x22AC, "⊢⊨⊩⊫"}, {0x22E0, "≼≽⊑⊒"},
    {0x22EA, "⊲⊳⊴⊵"}, {0x2329, "〈〉"}, {0x2ADC, "⫝"},
    {0x304C, "かききくくけけここささししすすせせそそたたちちっつつててとと"},
    {0x3070, "ははひひひふふふへへへほほほ"}, {0x3094, "う"}, {0x309E, "ゝ"},
    {0x30AC, "カキキククケケココササシシススセセソソタタチチッツツテテトト"},
    {0x30D0, "ハハヒヒヒフフフヘヘヘホホホ"}, {0x30F4, "ウヵヶワヰヱヲ・ーヽヽ"},
    {0xF900, "豈更車賈滑串句龜龜契金喇奈懶癩羅蘿螺裸邏樂洛烙珞落酪駱亂卵欄爛蘭鸞嵐濫藍襤拉臘"
         "蠟廊朗浪狼郎來冷勞擄櫓爐盧老蘆虜路露魯鷺碌祿綠菉錄鹿論壟弄籠聾牢磊賂雷壘屢樓淚漏累"
         "縷陋勒肋凜凌稜綾菱陵讀拏樂諾丹寧怒率異北磻便復不泌數索參塞省葉說殺辰沈拾若掠略亮兩"
         "凉梁糧良諒量勵呂女廬旅濾礪閭驪麗黎力曆歷轢年憐戀撚漣煉璉秊練聯輦蓮連鍊列劣咽烈裂說"
         "廉念捻殮簾獵令囹寧嶺怜玲瑩羚聆鈴零靈領例禮醴隸惡了僚寮尿料樂燎療蓼遼龍暈阮劉杻柳流"
         "溜琉留硫紐類六戮陸倫崙淪輪律慄栗率隆利吏履易李梨泥理痢罹裏裡里離匿溺吝燐璘藺隣鱗麟"
         "林淋臨立笠粒狀炙識什茶刺切度拓糖宅洞暴輻行降見廓兀嗀﨎﨏塚﨑晴﨓﨔凞猪益礼神祥福靖"
         "精羽﨟蘒﨡諸﨣﨤逸都﨧﨨﨩飯飼館鶴郞隷侮僧免勉勤卑喝嘆器塀墨層屮悔慨憎懲敏既暑梅海"
         "渚漢煮爫琢碑社祉祈祐祖祝禍禎穀突節練縉繁署者臭艹艹著褐視謁謹賓贈辶逸難響頻恵𤋮舘"},
    {0xFA70, "並况全侀充冀勇勺喝啕喙嗢塚墳奄奔婢嬨廒廙彩徭惘慎愈憎慠懲戴揄搜摒敖晴朗望杖歹殺"
         "流滛滋漢瀞煮瞧爵犯猪瑱甆画瘝瘟益盛直睊着磌窱節类絛練缾者荒華蝹襁覆視調諸請謁諾諭謹"
         "變贈輸遲醙鉶陼難靖韛響頋頻鬒龜𢡊𢡄𣏕㮝䀘䀹𥉉𥳐𧻓齃龎"}, {0xFB1D, "י"}, {0xFB1F, "ײ"},
    {0xFB2A, "ששששאאאבגדהוז"}, {0xFB38, "טיךכל"}, {0xFB3E, "מ"}, {0xFB40, "נס"}, {0xFB43, "ףפ"},
    {0xFB46, "צקרשתובכפ"}, {0x1109A, "𑂙𑂛𑂛"}, {0x110AB, "𑂥"}, {0x1D15E, "𝅗𝅘𝅘𝅘𝅘𝅘𝅘"},
    {0x1D1BB, "𝆹𝆺𝆹𝆺𝆹𝆺"},
    {0x2F800, "丽丸乁𠄢你侮侻倂偺備僧像㒞𠘺免兔兤具𠔜㒹內再𠕋冗冤仌冬况𩇟凵刃㓟刻剆割剷㔕勇"
         "勉勤勺包匆北卉卑博即卽卿卿卿𠨬灰及叟𠭣叫叱吆咞吸呈周咢哶唐啓啣善善喙喫喳嗂圖嘆圗噑"
         "噴切壮城埴堍型堲報墬𡓤売壷夆多夢奢𡚨𡛪姬娛娧姘婦㛮㛼嬈嬾嬾𡧈寃寘寧寳𡬘寿将当尢㞁屠"
         "屮峀岍𡷤嵃𡷦嵮嵫嵼巡巢㠯巽帨帽幩㡢𢆃㡼庰庳庶廊𪎒廾𢌱𢌱舁弢弢㣇𣊸𦇚形彫㣣徚忍志忹悁"
         "㤺㤜悔𢛔惇慈慌慎慌慺憎憲憤憯懞懲懶成戛扝抱拔捐𢬌挽拼捨掃揤𢯱搢揅掩㨮摩摾撝摷㩬敏敬"
         "𣀊旣書晉㬙暑㬈㫤冒冕最暜肭䏙朗望朡杞杓𣏃㭉柺枅桒梅𣑭梎栟椔㮝楂榣槪檨𣚣櫛㰘次𣢧歔㱎"
         "歲殟殺殻𣪍𡴋𣫺汎𣲼沿泍汧洖派海流浩浸涅𣴞洴港湮㴳滋滇𣻑淹潮𣽞𣾎濆瀹瀞瀛㶖灊災灷炭𠔥"
         "煅𤉣熜𤎫爨爵牐𤘈犀犕𤜵𤠔獺王㺬玥㺸㺸瑇瑜瑱璅瓊㼛甤𤰶甾𤲒異𢆟瘐𤾡𤾸𥁄㿼䀈直𥃳𥃲𥄙𥄳"
         "眞真真睊䀹瞋䁆䂖𥐝硎碌磌䃣𥘦祖𥚚𥛅福秫䄯穀穊穏𥥼𥪧𥪧竮䈂𥮫篆築䈧𥲀糒䊠糨糣紀𥾆絣䌁"
         "緇縂繅䌴𦈨𦉇䍙𦋙罺𦌾羕翺者𦓚𦔣聠𦖨聰𣍟䏕育脃䐋脾媵𦞧𦞵𣎓𣎜舁舄辞䑫芑芋芝劳花芳芽苦"
         "𦬼若茝荣莭茣莽菧著荓菊菌菜𦰶𦵫𦳕䔫蓱蓳蔖𧏊蕤𦼬䕝䕡𦾱𧃒䕫虐虜虧虩蚩蚈蜎蛢蝹蜨蝫螆䗗"
         "蟡蠁䗹衠衣𧙧裗裞䘵裺㒻𧢮𧥦䚾䛇誠諭變豕𧲨貫賁贛起𧼯𠠄跋趼跰𠣞軔輸𨗒𨗭邔郱鄑𨜮鄛鈸鋗"
         "鋘鉼鏹鐕𨯺開䦕閷𨵷䧦雃嶲霣𩅅𩈚䩮䩶韠𩐊䪲𩒖頋頋頩𩖶飢䬳餩馧駂駾䯎𩬰鬒鱀鳽䳎䳭鵧𪃎䳸"
         "𪄅𪈎𪊑麻䵖黹黾鼅鼏鼖鼻𪘀"},
};
// clang-format on

std::vector<std::pair<char32_t, char32_t>> AllPairs() {
  std::vector<std::pair<char32_t, char32_t>> pairs;
  for (const Run& run : kRuns) {
    char32_t from = run.first;
    for (const auto& [character, length] : gguf::Characters(run.becomes)) {
      pairs.emplace_back(from++, character);
    }
  }
  return pairs;
}

}  // namespace

char32_t WithoutAccents(char32_t c) {
  constexpr char32_t kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3;  // Hangul
  if (c < 0xC0) return c;
  if (c >= kFirstSyllable && c <= kLastSyllable) return 0x1100 + (c - kFirstSyllable) / (21 * 28);
  static const std::vector<std::pair<char32_t, char32_t>> kPairs = AllPairs();
  const auto found = std::ranges::lower_bound(kPairs, c, {}, &std::pair<char32_t, char32_t>::first);
  return found != kPairs.end() && found->first == c ? found->second : c;
}

}  // namespace tokenizer
